"""/openapi.json shows an example of everything, and each of them is true."""

from collections.abc import Iterator
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator, oas31_format_checker

from inbox.api.problem_types import PROBLEMS
from inbox.domain.keys import Scope
from tests.api.conftest import ApiClient, Tenancy
from tests.api.test_authorization import ANY_KEY, ROWS

Spec = dict[str, Any]
# What each call is named in generated clients, which break where it changes.
NAMES = {
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
# It has to come out of an response to the same question.
CANNOT_BE_MADE_UP = {"cursor"}
GOES_WITH = {"lease_seconds": {"mode": "lease"}}


@pytest.fixture
def anybody(tenancy: Tenancy) -> ApiClient:
    """May do everything."""
    tenancy.register("system")
    caller = tenancy.caller("system", *Scope)
    caller.put("/inboxes/crm")
    return caller


def operations(spec: Spec) -> Iterator[tuple[str, str, Spec]]:
    for path, item in spec["paths"].items():
        shared = item.get("parameters", [])
        for method, operation in item.items():
            if method != "parameters":
                parameters = [resolved(spec, each) for each in [*shared, *operation.get("parameters", [])]]
                yield method, path, operation | {"parameters": parameters}


def resolved(spec: Spec, part: Spec) -> Spec:
    if "$ref" not in part:
        return part
    _, _, kind, name = part["$ref"].split("/")
    found: Spec = spec["components"][kind][name]
    return found


def values(part: Spec) -> list[Any]:
    """The examples of a body, an response, a parameter or a header."""
    if "example" in part:
        return [part["example"]]
    shown: list[Any] = part["schema"].get("examples", [])
    return [each["value"] for each in part["examples"].values()] if "examples" in part else shown


def test_every_call_has_a_name_a_summary_and_a_place(spec: Spec) -> None:
    described = [operation for _, _, operation in operations(spec)]
    assert sorted(operation["operationId"] for operation in described) == sorted(NAMES)
    tags = {tag["name"] for tag in spec["tags"] if tag["description"]}
    assert all(operation["summary"] and set(operation["tags"]) <= tags for operation in described)


def test_every_call_says_which_scope_it_needs(spec: Spec) -> None:
    for method, path, operation in operations(spec):
        rule = path.replace("{event_id}", "<uuid:event_id>").replace("{", "<").replace("}", ">")
        row = ROWS[method.upper(), rule]
        scopes = row.scopes | row.peek_scopes
        named = {scope for scope in Scope if f"`{scope}`" in operation["description"]}
        assert named == (set() if scopes == ANY_KEY else scopes), (method, path)
        assert ("security" in operation) == (not scopes)


def test_every_body_and_every_answer_has_an_example(spec: Spec) -> None:
    contents = {
        f"{method} {path} {name}": media
        for method, path, operation in operations(spec)
        for name, part in {"body": operation.get("requestBody", {}), **operation["responses"]}.items()
        for media in resolved(spec, part).get("content", {}).values()
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
        if values(each) or "enum" in each["schema"] or each["schema"].get("type") == "boolean"
    }
    assert parameters.keys() - explained == set()


def problems_of(spec: Spec, operation: Spec) -> dict[str, Any]:
    """The examples of all its refusals, by their slugs."""
    media = [resolved(spec, part).get("content", {}) for part in operation["responses"].values()]
    problems = [each["application/problem+json"]["examples"] for each in media if "application/problem+json" in each]
    return {slug: example["value"] for examples in problems for slug, example in examples.items()}


def test_every_problem_has_an_example_beside_its_status(spec: Spec) -> None:
    described = [operation for _, _, operation in operations(spec)]
    everywhere = {"responses": spec["components"]["responses"]}
    shown = {slug: value for each in [everywhere, *described] for slug, value in problems_of(spec, each).items()}
    assert {slug: value["status"] for slug, value in shown.items()} == {
        problem.slug: problem.status for problem in PROBLEMS.values()
    }
    for operation in described:
        for status, part in operation["responses"].items():
            alone = problems_of(spec, {"responses": {status: part}})
            assert all(str(value["status"]) == status for value in alone.values())
    assert shown["invalid-request"]["errors"]


def test_a_call_shows_the_problems_that_it_can_have_and_no_others(spec: Spec) -> None:
    conflicts = {problem.slug for problem in PROBLEMS.values() if problem.status == 409}
    for method, path, operation in operations(spec):
        shown = problems_of(spec, operation).keys()
        assert ("not-json" in shown) == ("requestBody" in operation), path
        assert ("prefetch-refused" in shown) == (operation["operationId"] in {"poll", "poll_named"}), path
        assert shown & conflicts == CONFLICTS.get(operation["operationId"], set()), (method, path)


def schemas_with_examples(part: Any) -> Iterator[tuple[Spec, list[Any]]]:
    """From everywhere in the description: examples, and what they are examples of."""
    if isinstance(part, dict):
        if isinstance(part.get("schema"), dict):
            yield part["schema"], values(part)
        if isinstance(part.get("examples"), list):
            yield part, part["examples"]
    for each in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from schemas_with_examples(each)


def test_every_example_has_the_form_that_is_described(spec: Spec) -> None:
    checked = 0
    for schema, examples in schemas_with_examples(spec):
        whole = schema | {"components": spec["components"]}
        for example in examples:
            OAS31Validator(whole, format_checker=oas31_format_checker).validate(example)
            checked += 1
    assert checked > 200


def begun_with(operation: Spec) -> Spec:
    """The parameters that Swagger UI fills in before anybody has typed."""
    filled = {
        each["name"]: value
        for each in operation["parameters"]
        for value in (each.get("example", each["schema"].get("example", each["schema"].get("default"))),)
        if each["in"] != "path" and value is not None
    }
    return {name: str(value).lower() for name, value in filled.items()}


def requests_of(operation: Spec) -> Iterator[Spec]:
    """Each body of the examples, as *Try it out* would send it, and with each parameter alone."""
    media = operation.get("requestBody", {"content": {}})["content"].get("application/json")
    for body in [{"json": each} for each in values(media)] if media else [{}]:
        yield body | {"query_string": begun_with(operation)}
        for each in operation["parameters"]:
            for value in values(each) if each["in"] != "path" and each["name"] not in CANNOT_BE_MADE_UP else []:
                if each["in"] == "header":
                    yield body | {"headers": {each["name"]: value}}
                else:
                    yield body | {"query_string": {each["name"]: value, **GOES_WITH.get(each["name"], {})}}


def test_every_example_of_a_request_is_taken(spec: Spec, anybody: ApiClient) -> None:
    for method, path, operation in operations(spec):
        places = {each["name"]: each["example"] for each in operation["parameters"] if each["in"] == "path"}
        for request in requests_of(operation):
            # For a poll that would wait.
            anybody.send({})
            headers = anybody.headers | request.pop("headers", {})
            response = anybody.client.open(path.format(**places), method=method, headers=headers, **request)
            assert response.status_code in {200, 201, 204, 404, 409}, (method, path, request, response.text)
