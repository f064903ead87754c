"""The requests that the custom app for Make describes, sent as Make would, and their answers as it would read them."""

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


def definition(name: str) -> Any:
    return json.loads(pages.read("make.md").file(f"{name}.json"))


def filled_in(template: Any, variables: Json) -> Any:
    """With the values of `{{…}}`: of whatever type where it stands alone, and in the text otherwise."""

    def value(path: str) -> Any:
        found: Any = variables
        for name in path.split("."):
            found = found[name]
        return found

    match template:
        case dict():
            return {name: filled_in(each, variables) for name, each in template.items()}
        case str() if alone := re.fullmatch(r"{{([\w.]+)}}", template):
            return value(alone[1])
        case str():
            return re.sub(r"{{([\w.]+)}}", lambda found: str(value(found[1])), template)
    return template


def sent(request: Json, variables: Json) -> requests.Response:
    request = filled_in({name: request.get(name) for name in ("url", "method", "qs", "headers")}, variables)
    return requests.request(
        request["method"] or "GET", request["url"], params=request["qs"], headers=request["headers"], timeout=30
    )


def read_by(module: str, connection: Json) -> tuple[Json, list[Json]]:
    """What a module with the parameters' defaults says of the answer, and the items that it is about."""
    base, trigger = definition("base"), definition("trigger")
    defaults = {each["name"]: each["default"] for each in definition("trigger-parameters")}
    variables: Json = {"connection": connection, "parameters": defaults}
    request = trigger | {"url": base["baseUrl"] + trigger["url"], "headers": base["headers"]}
    answer = sent(request, variables)
    assert answer.status_code == 200, answer.text
    response = trigger["response"] | definition(module)["response"]
    items = filled_in(response["iterate"], {"body": answer.json()})
    assert isinstance(items, list)
    assert 0 < filled_in(response["limit"], variables) <= 500
    return response, items


@pytest.fixture
def connection(running_service: Service, new_key: Callable[[Sequence[str]], str]) -> Json:
    """What a user entered."""
    values = {"url": running_service.url, "apiKey": new_key(pages.read("make.md").scopes)}
    assert set(values) == {each["name"] for each in definition("connection-parameters")}
    return values


@pytest.fixture
def events(running_service: Service, connection: Json) -> list[str]:
    """The oldest first, several of them of one millisecond."""
    client = Client(running_service, connection["apiKey"])
    batch = [{"payload": {"order": number}, "event_type": "order.created"} for number in range(5)]
    together = client.call("POST", "/events/batch", json=batch).json()
    return [*(event["id"] for event in together), client.send({"order": 5}), client.send({"order": 6})]


def test_connection_shows_the_tenant_of_the_key(connection: Json) -> None:
    request = definition("connection")
    answer = sent(request, {"parameters": connection})
    label = filled_in(request["response"]["metadata"], {"body": answer.json()})
    assert (answer.status_code, label["type"]) == (200, "text")
    assert label["value"].startswith("recipe-")


@pytest.mark.parametrize("which", ["connection", "base"])
def test_refused_key_is_reported(connection: Json, which: str) -> None:
    answer = sent(definition("connection"), {"parameters": connection | {"apiKey": "nonsense"}})
    message = definition(which)["response"]["error"]["message"]
    told = filled_in(message, {"statusCode": answer.status_code, "body": answer.json()})
    assert re.fullmatch(r"\[401\] \w.*\.", told)


def test_trigger_reads_new_events(connection: Json, events: list[str]) -> None:
    response, items = read_by("trigger", connection)
    trigger = response["trigger"]
    assert (trigger["type"], trigger["order"]) == ("date", "desc")
    assert [filled_in(trigger["id"], {"item": item}) for item in items] == events[::-1]
    dates = [datetime.fromisoformat(filled_in(trigger["date"], {"item": item})) for item in items]
    assert dates == sorted(dates, reverse=True)
    assert [filled_in(response["output"], {"item": item})["payload"] for item in items] == [
        {"order": number} for number in range(6, -1, -1)
    ]


def test_first_event_can_be_chosen(connection: Json, events: list[str]) -> None:
    response, items = read_by("epoch", connection)
    choices = [filled_in(response["output"], {"item": item}) for item in items]
    assert [choice["label"].split()[1] for choice in choices] == events[::-1]
    assert all(set(choice) == {"label", "date"} and datetime.fromisoformat(choice["date"]) for choice in choices)


def test_trigger_changes_nothing(running_service: Service, connection: Json, events: list[str]) -> None:
    for module in ("trigger", "epoch", "trigger"):
        read_by(module, connection)
    waiting = Client(running_service, connection["apiKey"]).get("/inbox?mode=peek")
    assert [(event["id"], event["deliveries"]) for event in waiting] == [(event, 0) for event in events]
