"""What is written down of a run: the rights of each call of the product, under the program that makes it."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.recorder import call_recorder
from tests.deploy.recorder.call_recorder import needed_rights
from tests.deploy.recording import differences, known_calls
from tests.dynamodb.conftest import LATER, NOW, keyed
from tests.engines.harnesses import DynamoDBHarness


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> Iterator[DynamoDBHarness]:
    request.getfixturevalue("on_moto")
    harness = DynamoDBHarness()
    yield harness
    harness.close()


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[str]]:
    """From here on."""
    monkeypatch.setenv(call_recorder.FOLDER, str(tmp_path))
    monkeypatch.setattr(call_recorder, "_written", set())
    return lambda: {line.replace("\t", " ") for file in tmp_path.iterdir() for line in file.read_text().splitlines()}


@pytest.mark.parametrize(
    ("operation", "parameters", "rights"),
    [
        ("GetItem", {"TableName": "dev-Tenants"}, ["GetItem Tenants"]),
        ("Query", {"TableName": "Events", "IndexName": "status-index"}, ["Query Events/index/status-index"]),
        (
            "BatchGetItem",
            {"RequestItems": {"Events": {}, "Tenants": {}}},
            ["BatchGetItem Events", "BatchGetItem Tenants"],
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": "Events"}}, {"ConditionCheck": {"TableName": "Tenants"}}]},
            ["PutItem Events", "ConditionCheckItem Tenants"],
        ),
        ("TransactGetItems", {"TransactItems": [{"Get": {"TableName": "Events"}}]}, ["GetItem Events"]),
        (
            "BatchExecuteStatement",
            {"Statements": [{"Statement": 'UPDATE "Events" SET a = ?'}, {"Statement": 'insert into "Events" value ?'}]},
            ["PartiQLUpdate Events", "PartiQLInsert Events"],
        ),
        (
            "ExecuteStatement",
            {"Statement": 'SELECT "a" FROM "Events"."status-index"'},
            ["PartiQLSelect Events/index/status-index"],
        ),
        ("ExecuteStatement", {"Statement": 'DELETE FROM "dev-Events" WHERE pk = ?'}, ["PartiQLDelete Events"]),
        ("ExecuteStatement", {"Statement": "EXPLAIN something"}, ["PartiQL ?"]),
        ("CreateTable", {"TableName": "Others"}, ["CreateTable Others"]),
        ("ListTables", {}, ["ListTables ?"]),
    ],
)
def test_a_call_needs_rights(operation: str, parameters: dict[str, Any], rights: list[str]) -> None:
    assert list(needed_rights(operation, parameters)) == rights


def test_what_the_product_asks_for_is_written_down(harness: DynamoDBHarness, recorded: Callable[[], set[str]]) -> None:
    harness.store.check()
    assert recorded() == {"service DeleteItem Events inbox.store.dynamodb.DynamoDBStore.check"}


def test_what_it_asks_for_in_other_threads_is_too(harness: DynamoDBHarness, recorded: Callable[[], set[str]]) -> None:
    harness.store.events.put("acme", [keyed(), keyed()], NOW, LATER)
    assert "service PutItem Events inbox.store.dynamodb.event_writer.Writing._put" in recorded()


def test_what_a_test_asks_for_is_not(harness: DynamoDBHarness, recorded: Callable[[], set[str]]) -> None:
    harness.connection.get("Tenants", {"PK": {"S": "a"}, "SK": {"S": "b"}})
    assert recorded() == set()


@pytest.mark.parametrize(
    ("words", "of_check", "of_list"),
    [
        (["pytest"], "service", "operator"),
        (["inbox", "quickstart"], "service", "operator"),
        (["inbox", "serve"], "service", "service"),
        (["inbox", "tenants", "list"], "operator", "operator"),
        (["inbox", "backlog"], "backlog", "backlog"),
    ],
)
def test_a_call_is_that_of_the_program_that_makes_it(
    harness: DynamoDBHarness,
    recorded: Callable[[], set[str]],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    of_check: str,
    of_list: str,
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    harness.store.check()
    harness.store.tenants.all()
    assert {tuple(line.split()[:3]) for line in recorded()} == {
        (of_check, "DeleteItem", "Events"),
        (of_list, "Query", "Tenants/index/ActiveIndex"),
    }


def test_a_run_is_held_against_what_is_known(tmp_path: Path) -> None:
    known = [f"{program}\t{right}\tinbox.somewhere\n" for program, rights in known_calls().items() for right in rights]
    (tmp_path / "1").write_text("".join(known))
    assert list(differences(tmp_path, is_whole=True)) == []

    (tmp_path / "1").write_text("".join(known[1:]))
    assert list(differences(tmp_path, is_whole=False)) == []
    program, right, _ = known[0].split("\t")
    assert list(differences(tmp_path, is_whole=True)) == [f"IN calls.json, AND NO TEST COMES TO IT: {program}, {right}"]

    (tmp_path / "2").write_text("service\tScan Events\tinbox.here\nservice\tScan Events\tinbox.there\n")
    assert list(differences(tmp_path, is_whole=False)) == [
        "NOT IN calls.json: service needs Scan Events, for inbox.here"
    ]
