"""The flow of docs/how-to/recipes in a real Node-RED: each event is handled once, and again if it was not acknowledged.

`make recipes` installs Node-RED and runs this file. Without `--node-red`, pytest collects it only if it is named.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.consumers import Client
from tests.engines import node_red
from tests.engines.node_red import NodeRed
from tests.service import Service, until

FLOW = Path(__file__).parents[2] / "docs" / "how-to" / "recipes" / "node-red.json"
OWN_NODES = "your-own-nodes"


def build_flow(own_nodes: dict[str, Any], seconds: float = 0.2) -> list[dict[str, Any]]:
    """Returns the recipe's flow with `own_nodes`. The flow polls and logs `tick` every `seconds`."""
    flow: list[dict[str, Any]] = json.loads(FLOW.read_text())
    by_id = {node["id"]: node for node in flow}
    placeholder = by_id[OWN_NODES]
    kept = {name: placeholder[name] for name in ("id", "z", "wires")}
    flow[flow.index(placeholder)] = own_nodes | kept
    tick = by_id["every-5-seconds"]
    tick["repeat"] = str(seconds)
    tick["wires"][0].append("clock")
    return [*flow, make_function_node("node.log('tick');") | {"id": "clock", "z": tick["z"], "wires": []}]


def make_file_node(file: Path) -> dict[str, Any]:
    path = {"filename": str(file), "filenameType": "str"}
    return {"type": "file", "appendNewline": True, "overwriteFile": "false", **path}


def make_function_node(code: str) -> dict[str, Any]:
    return {"type": "function", "func": code, "outputs": 1}


def read_ids(file: Path) -> list[str]:
    return [json.loads(line)["id"] for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def node(tmp_path: Path, service: Service) -> Iterator[NodeRed]:
    """Returns a Node-RED that is not started yet and has a key of the tenant `acme`."""
    assert node_red.is_available(), node_red.MISSING
    folder = tmp_path / "node-red"
    folder.mkdir()
    variables = {"INBOX_URL": service.url, "INBOX_API_KEY": service.create_key("acme")}
    node = NodeRed(folder, service.environment | variables)
    yield node
    node.kill()


@pytest.fixture
def client(service: Service) -> Client:
    return Client(service, service.create_key("acme"))


def wait_until_delivered(client: Client, count: int) -> None:
    until(lambda: len(client.get("/events?status=delivered&limit=500")) == count, 60)


def test_each_event_reaches_the_flow_once_and_is_acknowledged(
    service: Service, node: NodeRed, client: Client, tmp_path: Path
) -> None:
    service.start()
    node.start(build_flow(make_file_node(tmp_path / "received")))
    sent = [client.send({"n": number}) for number in range(20)]
    wait_until_delivered(client, 20)
    assert read_ids(tmp_path / "received") == sent


def test_undelivered_events_are_polled_before_the_next_tick(
    service: Service, node: NodeRed, client: Client, tmp_path: Path
) -> None:
    service.start()
    sent = client.call("POST", "/events/batch", json=[{"payload": {"n": number}} for number in range(250)]).json()
    node.start(build_flow(make_file_node(tmp_path / "received"), seconds=3600))
    wait_until_delivered(client, 250)
    assert read_ids(tmp_path / "received") == [event["id"] for event in sent]


def test_events_of_a_killed_node_red_are_delivered_again(
    service: Service, node: NodeRed, client: Client, tmp_path: Path
) -> None:
    service.variables["INBOX_LEASE_SECONDS"] = "5"
    service.start()
    sent = [client.send({"n": number}) for number in range(3)]
    node.start(build_flow(make_function_node("return null;")))
    until(lambda: len(client.get("/events?status=leased")) == len(sent), 60)
    node.kill()
    node.start(build_flow(make_file_node(tmp_path / "received")))
    wait_until_delivered(client, 3)
    assert read_ids(tmp_path / "received") == sent
    assert [event["deliveries"] for event in client.get("/events")] == [2, 2, 2]


def test_events_whose_acknowledgement_fails_are_delivered_again(
    service: Service, node: NodeRed, client: Client
) -> None:
    service.variables["INBOX_LEASE_SECONDS"] = "2"
    service.start()
    client.send({})
    flow = build_flow(make_function_node("return msg;"))
    (acknowledge,) = (each for each in flow if each["id"] == "acknowledge")
    acknowledge["url"] = "{{{inbox}}}/inbox/nowhere/ack"
    node.start(flow)
    until(lambda: client.get("/events")[0]["deliveries"] >= 2, 60)
    assert "Acknowledge: 404 " in node.log.read_text()
    assert client.get("/events?status=delivered") == []


def test_no_more_events_are_leased_while_some_are_processed(service: Service, node: NodeRed, client: Client) -> None:
    service.start()
    client.call("POST", "/events/batch", json=[{"payload": {"n": number}} for number in range(101)])
    node.start(build_flow(make_function_node("node.log('handling');")))
    until(lambda: node.log.read_text().partition("handling")[2].count("tick") >= 10, 60)
    assert len(client.get("/events?status=leased&limit=500")) == 100


def test_event_that_fails_in_the_flow_is_delivered_again_and_blocks_no_other(
    service: Service, node: NodeRed, client: Client
) -> None:
    service.variables["INBOX_LEASE_SECONDS"] = "3"
    service.start()
    bad, good = client.send({"n": 0}), client.send({"n": 1})
    fail_once = (
        "if (msg.payload.id === '%s' && msg.payload.deliveries === 1) { throw new Error('no luck'); } return msg;"
    )
    node.start(build_flow(make_function_node(fail_once % bad)))
    wait_until_delivered(client, 2)
    assert {event["id"]: event["deliveries"] for event in client.get("/events")} == {bad: 2, good: 1}
    assert "no luck" in node.log.read_text()


def test_unreachable_service_and_rejected_key_are_shown_and_retried(
    service: Service, node: NodeRed, client: Client
) -> None:
    node.start(build_flow(make_function_node("return msg;")))
    until(lambda: "ECONNREFUSED" in node.log.read_text(), 60)
    service.run("tenants", "suspend", "acme")
    service.variables["INBOX_KEY_CACHE_SECONDS"] = "0"
    service.start()
    until(lambda: "Poll: 403 " in node.log.read_text())
    service.run("tenants", "resume", "acme")
    client.send({})
    wait_until_delivered(client, 1)


def test_retry_after_is_respected(service: Service, node: NodeRed) -> None:
    service.variables["INBOX_AUTH_FAILURE_LIMIT"] = "3"
    service.start()
    node.environment["INBOX_API_KEY"] = "unknown"
    node.start(build_flow(make_function_node("return msg;")))
    until(lambda: node.log.read_text().partition("Poll: 429 ")[2].count("tick") >= 10, 60)
    shown = re.findall(r"\[debug:Inbox\]\s+Poll: (\d+) ", node.log.read_text())
    assert shown == ["401", "401", "401", "429"]
