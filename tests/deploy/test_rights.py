"""The policies allow what their programs need, as `calls.json` has it, and nothing else."""

import copy

import pytest

from tests.deploy.policies import PROGRAMS, as_list, documents, faults, rights_in
from tests.deploy.recording import known_calls

ENTRIES = [
    (name, number, member, entry)
    for name, document in documents().items()
    for number, statement in enumerate(document["Statement"])
    for member in ("Action", "Resource")
    for entry in range(len(as_list(statement[member])))
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_policy_is_sufficient_and_least(name: str) -> None:
    assert faults(name, documents()[name]) == []


def test_every_policy_is_somebodys_and_every_program_has_one() -> None:
    assert documents().keys() == PROGRAMS.keys()
    assert known_calls().keys() <= {program for programs in PROGRAMS.values() for program in programs}


@pytest.mark.parametrize(("name", "number", "member", "entry"), ENTRIES)
def test_any_right_that_is_taken_away_is_missed(name: str, number: int, member: str, entry: int) -> None:
    document = copy.deepcopy(documents()[name])
    statement = document["Statement"][number]
    before, faults_before = set(rights_in(statement)), set(faults(name, document))
    statement[member] = as_list(statement[member])
    del statement[member][entry]
    taken = before - set(rights_in(statement))
    assert taken
    assert set(faults(name, document)) - faults_before == {f"missing: {right}" for right in taken}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("member", "entry"), [("Action", "dynamodb:*"), ("Resource", "*"), ("Action", "s3:GetObject")])
def test_any_right_that_is_put_in_is_spare(name: str, member: str, entry: str) -> None:
    document = copy.deepcopy(documents()[name])
    statement = document["Statement"][0]
    before, faults_before = set(rights_in(statement)), set(faults(name, document))
    statement[member] = [*as_list(statement[member]), entry]
    put_in = set(rights_in(statement)) - before
    assert set(faults(name, document)) - faults_before == {f"spare: {right}" for right in put_in}
