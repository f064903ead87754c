"""Sends the requests of the custom app for Make, and reads the responses, as Make would."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest
import requests

from tests.e2e.consumers import Client
from tests.recipes import pages
from tests.service import Service

Json = dict[str, Any]


def read_definition(name: str) -> Any:
    return json.loads(pages.read("make.md").file(f"{name}.json"))


def fill_in(template: Any, variables: Json) -> Any:
    """Returns the template with values in place of `{{…}}`: of any type if it is the whole string, else as text."""

    def look_up(path: str) -> Any:
        found: Any = variables
        for name in path.split("."):
            found = found[name]
        return found

    match template:
        case dict():
            return {name: fill_in(each, variables) for name, each in template.items()}
        case str() if alone := re.fullmatch(r"{{([\w.]+)}}", template):
            return look_up(alone[1])
        case str():
            return re.sub(r"{{([\w.]+)}}", lambda found: str(look_up(found[1])), template)
    return template


def send(request: Json, variables: Json) -> requests.Response:
    request = fill_in({name: request.get(name) for name in ("url", "method", "qs", "headers")}, variables)
    return requests.request(
        request["method"] or "GET", request["url"], params=request["qs"], headers=request["headers"], timeout=30
    )


def run_module(module: str, connection: Json) -> tuple[Json, list[Json]]:
    """Sends the module's request with default parameters. Returns its `response` definition, and the items received."""
    base, trigger = read_definition("base"), read_definition("trigger")
    defaults = {each["name"]: each["default"] for each in read_definition("trigger-parameters")}
    variables: Json = {"connection": connection, "parameters": defaults}
    request = trigger | {"url": base["baseUrl"] + trigger["url"], "headers": base["headers"]}
    response = send(request, variables)
    assert response.status_code == 200, response.text
    expected = trigger["response"] | read_definition(module)["response"]
    items = fill_in(expected["iterate"], {"body": response.json()})
    assert isinstance(items, list)
    assert 0 < fill_in(expected["limit"], variables) <= 500
    return expected, items


@pytest.fixture
def connection(running_service: Service, new_key: Callable[[Sequence[str]], str]) -> Json:
    """Returns the values that a user enters."""
    values = {"url": running_service.url, "apiKey": new_key(pages.read("make.md").scopes)}
    assert set(values) == {each["name"] for each in read_definition("connection-parameters")}
    return values


@pytest.fixture
def events(running_service: Service, connection: Json) -> list[str]:
    """Returns event IDs, oldest first. Several events have the same timestamp."""
    client = Client(running_service, connection["apiKey"])
    batch = [{"payload": {"order": number}, "event_type": "order.created"} for number in range(5)]
    together = client.call("POST", "/events/batch", json=batch).json()
    return [*(event["id"] for event in together), client.send({"order": 5}), client.send({"order": 6})]


def test_connection_shows_the_tenant_of_the_key(connection: Json) -> None:
    request = read_definition("connection")
    response = send(request, {"parameters": connection})
    label = fill_in(request["response"]["metadata"], {"body": response.json()})
    assert (response.status_code, label["type"]) == (200, "text")
    assert label["value"].startswith("recipe-")


@pytest.mark.parametrize("which", ["connection", "base"])
def test_rejected_key_is_reported(connection: Json, which: str) -> None:
    response = send(read_definition("connection"), {"parameters": connection | {"apiKey": "nonsense"}})
    template = read_definition(which)["response"]["error"]["message"]
    message = fill_in(template, {"statusCode": response.status_code, "body": response.json()})
    assert re.fullmatch(r"\[401\] \w.*\.", message)


def test_trigger_reads_new_events(connection: Json, events: list[str]) -> None:
    response, items = run_module("trigger", connection)
    trigger = response["trigger"]
    assert (trigger["type"], trigger["order"]) == ("date", "desc")
    assert [fill_in(trigger["id"], {"item": item}) for item in items] == events[::-1]
    dates = [datetime.fromisoformat(fill_in(trigger["date"], {"item": item})) for item in items]
    assert dates == sorted(dates, reverse=True)
    assert [fill_in(response["output"], {"item": item})["payload"] for item in items] == [
        {"order": number} for number in range(6, -1, -1)
    ]


def test_first_event_can_be_chosen(connection: Json, events: list[str]) -> None:
    response, items = run_module("epoch", connection)
    choices = [fill_in(response["output"], {"item": item}) for item in items]
    assert [choice["label"].split()[1] for choice in choices] == events[::-1]
    assert all(set(choice) == {"label", "date"} and datetime.fromisoformat(choice["date"]) for choice in choices)


def test_trigger_changes_nothing(running_service: Service, connection: Json, events: list[str]) -> None:
    for module in ("trigger", "epoch", "trigger"):
        run_module(module, connection)
    undelivered = Client(running_service, connection["apiKey"]).get("/inbox?mode=peek")
    assert [(event["id"], event["deliveries"]) for event in undelivered] == [(event, 0) for event in events]
