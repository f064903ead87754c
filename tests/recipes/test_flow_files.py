"""The flow files of the recipes: their calls match the API, their nodes are wired, and they contain no key."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests

from tests.service import Service

RECIPES = Path(__file__).parents[2] / "docs" / "how-to" / "recipes"


class NodeRedFlow:
    """The nodes, wires and HTTP requests of a flow. `starts` are the nodes that need no wire to them."""

    file = "node-red.json"
    base_url = "{{{inbox}}}"

    def __init__(self, flow: list[dict[str, Any]]) -> None:
        self.nodes = {node["id"] for node in flow}
        self.wires = {(node["id"], end) for node in flow for output in node.get("wires", []) for end in output}
        self.calls = [(node["method"], node["url"]) for node in flow if node["type"] == "http request"]
        self.starts = {node["id"] for node in flow if node["type"] in ("tab", "comment", "inject", "catch")}


class N8nWorkflow:
    """The same members of a workflow."""

    file = "n8n.json"
    base_url = "={{ $('Address').first().json.inbox }}"

    def __init__(self, workflow: dict[str, Any]) -> None:
        nodes = workflow["nodes"]
        self.nodes = {node["name"] for node in nodes}
        self.wires = {
            (start, end["node"])
            for start, outputs in workflow["connections"].items()
            for output in outputs["main"]
            for end in output
        }
        requests = [node["parameters"] for node in nodes if node["type"].endswith(".httpRequest")]
        self.calls = [(request["method"], request["url"]) for request in requests]
        self.starts = {node["name"] for node in nodes if node["type"].endswith("Trigger")}


KINDS = (NodeRedFlow, N8nWorkflow)


@pytest.fixture(params=KINDS, ids=lambda kind: kind.file)
def flow(request: pytest.FixtureRequest) -> NodeRedFlow | N8nWorkflow:
    kind = request.param
    flow: NodeRedFlow | N8nWorkflow = kind(json.loads((RECIPES / kind.file).read_text()))
    return flow


@pytest.fixture
def specification(running_service: Service) -> dict[str, Any]:
    document: dict[str, Any] = requests.get(f"{running_service.url}/openapi.json", timeout=30).json()
    return document


def test_every_request_is_in_the_openapi_document(
    flow: NodeRedFlow | N8nWorkflow, specification: dict[str, Any]
) -> None:
    for method, url in flow.calls:
        assert url.startswith(flow.base_url)
        parts = urlsplit(url.removeprefix(flow.base_url))
        operation = specification["paths"][parts.path][method.lower()]
        schemas = {each["name"]: each["schema"] for each in operation.get("parameters", []) if each["in"] == "query"}
        for name, value in parse_qsl(parts.query, strict_parsing=bool(parts.query)):
            choices = schemas[name].get("enum", [value])
            assert value in choices, name


def test_events_are_leased_and_acknowledged(flow: NodeRedFlow | N8nWorkflow) -> None:
    poll, acknowledge = (urlsplit(url.removeprefix(flow.base_url)) for _, url in flow.calls)
    assert (poll.path, dict(parse_qsl(poll.query))["mode"]) == ("/inbox", "lease")
    assert acknowledge.path == "/inbox/ack"


def test_every_node_is_wired(flow: NodeRedFlow | N8nWorkflow) -> None:
    assert {end for wire in flow.wires for end in wire} <= flow.nodes
    assert {end for _, end in flow.wires} == flow.nodes - flow.starts


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.file)
def test_file_contains_no_key(kind: type[NodeRedFlow | N8nWorkflow]) -> None:
    text = (RECIPES / kind.file).read_text()
    assert not re.search(r"ibx_|Bearer |[A-Za-z0-9]{40}", text)


def test_n8n_expressions_name_existing_nodes() -> None:
    text = (RECIPES / "n8n.json").read_text()
    named = set(re.findall(r"\$\('([^']+)'\)", text))
    assert named == {"Address", "Poll"} <= {node["name"] for node in json.loads(text)["nodes"]}
