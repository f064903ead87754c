"""Every operation, parameter, body and response in /openapi.json has an example, and each example is valid."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator, oas31_format_checker

from inbox.api.problem_types import PROBLEMS
from inbox.domain.keys import Scope
from tests.api.conftest import ApiClient, TenantFactory
from tests.api.routes import ANY_KEY, ROUTES

Spec = dict[str, Any]
# Generated clients use these names and break if they change.
OPERATION_IDS = {
    *("send_event", "send_batch", "list_events", "get_event", "replay_event", "replay_events", "erase_event"),
    *("poll", "poll_named", "acknowledge", "release", "extend"),
    *("list_inboxes", "get_inbox", "save_inbox", "remove_inbox"),
    *("list_keys", "create_key", "revoke_key", "rotate_key"),
    *("list_tenants", "create_tenant", "get_tenant", "update_tenant", "set_tenant_status", "delete_tenant"),
    *("restore_tenant", "list_tenant_audit", "create_key_for_tenant"),
    *("stats", "me", "healthz", "readyz", "metrics"),
}
CONFLICTS = {
    "send_event": {"idempotency-conflict"},
    "send_batch": {"idempotency-conflict"},
    "replay_event": {"event-leased"},
    "save_inbox": {"too-many-inboxes"},
    "create_key": {"too-many-keys", "not-allowed"},
    "rotate_key": {"too-many-keys", "not-allowed"},
    "create_key_for_tenant": {"too-many-keys", "not-allowed"},
    "create_tenant": {"already-exists", "email-taken"},
    "update_tenant": {"email-taken"},
    "set_tenant_status": {"wrong-step", "not-allowed"},
    "delete_tenant": {"not-allowed"},
}
# The example of a cursor is not valid: the service accepts only cursors from its own responses.
NOT_TRIED = {"cursor"}
REQUIRED_WITH = {"lease_seconds": {"mode": "lease"}}


@pytest.fixture
def client_with_every_scope(tenant_factory: TenantFactory) -> ApiClient:
    tenant_factory.register("system")
    client = tenant_factory.create_client("system", *Scope)
    # Examples poll the inbox crm.
    client.put("/inboxes/crm")
    return client


def operations(spec: Spec) -> Iterator[tuple[str, str, Spec]]:
    """Yields the method, the path and the description of every operation, with all its parameters."""
    for path, item in spec["paths"].items():
        shared = item.get("parameters", [])
        for method, operation in item.items():
            if method != "parameters":
                parameters = [resolve(spec, each) for each in [*shared, *operation.get("parameters", [])]]
                yield method, path, operation | {"parameters": parameters}


def resolve(spec: Spec, part: Spec) -> Spec:
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    found: Spec = spec["components"][kind][name]
    return found


def examples_of(part: Spec) -> list[Any]:
    """Returns the examples of a body, a response, a parameter or a header."""
    if "example" in part:
        return [part["example"]]
    shown: list[Any] = part["schema"].get("examples", [])
    return [each["value"] for each in part["examples"].values()] if "examples" in part else shown


def test_every_operation_has_an_id_a_summary_and_a_tag(spec: Spec) -> None:
    described = [operation for _, _, operation in operations(spec)]
    assert sorted(operation["operationId"] for operation in described) == sorted(OPERATION_IDS)
    tags = {tag["name"] for tag in spec["tags"] if tag["description"]}
    assert all(operation["summary"] and set(operation["tags"]) <= tags for operation in described)


def test_every_operation_names_its_scopes(spec: Spec) -> None:
    for method, path, operation in operations(spec):
        rule = path.replace("{event_id}", "<uuid:event_id>").replace("{", "<").replace("}", ">")
        row = ROUTES[method.upper(), rule]
        scopes = row.scopes | row.peek_scopes
        named = {scope for scope in Scope if f"`{scope}`" in operation["description"]}
        assert named == (set() if scopes == ANY_KEY else scopes), (method, path)
        assert ("security" in operation) == (not scopes)


def test_every_body_and_response_has_an_example(spec: Spec) -> None:
    contents = {
        f"{method} {path} {name}": media
        for method, path, operation in operations(spec)
        for name, part in {"body": operation.get("requestBody", {}), **operation["responses"]}.items()
        for media in resolve(spec, part).get("content", {}).values()
    }
    assert contents.keys() >= {"post /events body", "post /events 201", "post /events 422", "get /readyz 503"}
    assert [name for name, media in contents.items() if not {"example", "examples"} & media.keys()] == []


def test_every_parameter_has_an_example_or_choices(spec: Spec) -> None:
    parameters = {
        f"{method} {path} {each['name']}": each
        for method, path, operation in operations(spec)
        for each in operation["parameters"]
    }
    explained = {
        name
        for name, each in parameters.items()
        if examples_of(each) or "enum" in each["schema"] or each["schema"].get("type") == "boolean"
    }
    assert parameters.keys() - explained == set()


def problem_examples(spec: Spec, operation: Spec) -> dict[str, Any]:
    """Returns the examples of all problems of an operation, by slug."""
    media = [resolve(spec, part).get("content", {}) for part in operation["responses"].values()]
    problems = [each["application/problem+json"]["examples"] for each in media if "application/problem+json" in each]
    return {slug: example["value"] for examples in problems for slug, example in examples.items()}


def test_every_problem_has_an_example_at_its_status(spec: Spec) -> None:
    described = [operation for _, _, operation in operations(spec)]
    shown = {slug: value for each in described for slug, value in problem_examples(spec, each).items()}
    # Every path can have a 405, and a 500 is a bug: no operation lists them.
    assert {slug: value["status"] for slug, value in shown.items()} == {
        problem.slug: problem.status for problem in PROBLEMS.values() if problem.status not in (405, 500)
    }
    for operation in described:
        for status, part in operation["responses"].items():
            alone = problem_examples(spec, {"responses": {status: part}})
            assert all(str(value["status"]) == status for value in alone.values())
    assert shown["invalid-request"]["errors"]
    assert shown["precondition-failed"]["detail"] == "The inbox crm already exists. Nothing was changed."


def test_every_component_is_referenced(spec: Spec) -> None:
    references = set(re.findall(r'"#/components/(\w+)/([\w-]+)"', json.dumps(spec)))
    schemes = {("securitySchemes", name) for requirement in spec["security"] for name in requirement}
    components = {(kind, name) for kind, named in spec["components"].items() for name in named}
    assert components == references | schemes


def test_operation_shows_exactly_its_possible_problems(spec: Spec) -> None:
    conflicts = {problem.slug for problem in PROBLEMS.values() if problem.status == 409}
    for method, path, operation in operations(spec):
        shown = problem_examples(spec, operation).keys()
        assert ("not-json" in shown) == ("requestBody" in operation), path
        assert ("prefetch-refused" in shown) == (operation["operationId"] in {"poll", "poll_named"}), path
        assert shown & conflicts == CONFLICTS.get(operation["operationId"], set()), (method, path)


def schemas_with_examples(part: Any) -> Iterator[tuple[Spec, list[Any]]]:
    """Yields every schema of the document with its examples."""
    if isinstance(part, dict):
        if isinstance(part.get("schema"), dict):
            yield part["schema"], examples_of(part)
        if isinstance(part.get("examples"), list):
            yield part, part["examples"]
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from schemas_with_examples(each)


def test_every_example_matches_its_schema(spec: Spec) -> None:
    checked = 0
    for schema, examples in schemas_with_examples(spec):
        whole = schema | {"components": spec["components"]}
        for example in examples:
            OAS31Validator(whole, format_checker=oas31_format_checker).validate(example)
            checked += 1
    assert checked > 200


def initial_parameters(operation: Spec) -> Spec:
    """Returns the parameters that Swagger UI fills in."""
    filled = {
        each["name"]: value
        for each in operation["parameters"]
        for value in (each.get("example", each["schema"].get("example", each["schema"].get("default"))),)
        if each["in"] != "path" and value is not None
    }
    return {name: str(value).lower() for name, value in filled.items()}


def requests_with_examples(operation: Spec) -> Iterator[Spec]:
    """Yields, for each example of a body, a request with the initial parameters and one per example of a parameter."""
    media = operation.get("requestBody", {"content": {}})["content"].get("application/json")
    for body in [{"json": each} for each in examples_of(media)] if media else [{}]:
        yield body | {"query_string": initial_parameters(operation)}
        for each in operation["parameters"]:
            for value in examples_of(each) if each["in"] != "path" and each["name"] not in NOT_TRIED else []:
                if each["in"] == "header":
                    yield body | {"headers": {each["name"]: value}}
                else:
                    yield body | {"query_string": {each["name"]: value, **REQUIRED_WITH.get(each["name"], {})}}


def test_every_example_of_a_request_is_accepted(spec: Spec, client_with_every_scope: ApiClient) -> None:
    for method, path, operation in operations(spec):
        path_values = {each["name"]: each["example"] for each in operation["parameters"] if each["in"] == "path"}
        for request in requests_with_examples(operation):
            # An undelivered event makes a poll with `wait` return at once.
            client_with_every_scope.send({})
            headers = client_with_every_scope.headers | request.pop("headers", {})
            response = client_with_every_scope.client.open(
                path.format(**path_values), method=method, headers=headers, **request
            )
            assert response.status_code in {200, 201, 204, 404, 409}, (method, path, request, response.text)
