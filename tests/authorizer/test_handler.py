"""The authorizer's handler, with recorded events and a registry on moto."""

import base64
import json
import logging
import time
from typing import Any

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from authorizer import apikey, lambda_handler, sealing
from authorizer.lambda_handler import handler
from authorizer.resolver import KeyRecord, Principal
from tests.authorizer.conftest import FORMATS_WITH_POLICY, PAYLOAD_FORMATS, SECRET, read_event
from tests.authorizer.registry import Registry

STAGES = {
    "rest_token": "arn:aws:execute-api:us-east-1:123456789012:ymy8tbxw7b/prod/*",
    "rest_request": "arn:aws:execute-api:us-east-1:123456789012:abcdef1234/test/*",
    "http_api_1": "arn:aws:execute-api:us-east-1:123456789012:abcdef1234/$default/*",
}

pytestmark = pytest.mark.usefixtures("on_registry")


def is_allowed(event: dict[str, Any]) -> bool:
    """Returns False if API Gateway would respond with 403. The handler raises an exception for a 401."""
    response = handler(event, None)
    if "isAuthorized" in response:
        return bool(response["isAuthorized"])
    (statement,) = response["policyDocument"]["Statement"]
    return bool(statement["Effect"] == "Allow")


def assert_refused(event: dict[str, Any]) -> None:
    if event.get("version") == "2.0":
        assert handler(event, None) == {"isAuthorized": False, "context": {}}
    else:
        with pytest.raises(Exception, match=r"^Unauthorized$") as raised:
            handler(event, None)
        assert type(raised.value) is Exception


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def rest_request_with(headers: dict[str, list[str]]) -> dict[str, Any]:
    event = read_event("rest_request", "KEY")
    event["multiValueHeaders"] = headers
    event["headers"] = {name: values[-1] for name, values in headers.items()}
    return event


@pytest.mark.parametrize("payload_format", FORMATS_WITH_POLICY)
def test_policy_allows_the_whole_stage(payload_format: str, registry: Registry) -> None:
    tenant_id = registry.add_tenant(organization_name={"S": "Žižkov & Söhne"})
    key = registry.add_key(tenant_id, key_id={"S": f"{payload_format}-key"})
    assert handler(read_event(payload_format, key), None) == {
        "principalId": tenant_id,
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [{"Action": "execute-api:Invoke", "Effect": "Allow", "Resource": STAGES[payload_format]}],
        },
        "context": {
            "tenant_id": tenant_id,
            "tenant_name": "Žižkov & Söhne",
            "key_id": f"{payload_format}-key",
            "scopes": "events:write inbox:read",
        },
    }


def test_http_api_2_gets_a_simple_response(registry: Registry) -> None:
    tenant_id = registry.add_tenant()
    key = registry.add_key(tenant_id, key_id={"S": "simple-key"}, scopes={"L": []})
    assert handler(read_event("http_api_2", key), None) == {
        "isAuthorized": True,
        "context": {"tenant_id": tenant_id, "tenant_name": tenant_id, "key_id": "simple-key", "scopes": ""},
    }


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_policy_keeps_the_aws_partition(partition: str, registry: Registry) -> None:
    event = read_event("rest_token", registry.add_key(registry.add_tenant()))
    event["methodArn"] = f"arn:{partition}:execute-api:cn-north-1:123456789012:abc/v1/GET/"
    (statement,) = handler(event, None)["policyDocument"]["Statement"]
    assert statement["Resource"] == f"arn:{partition}:execute-api:cn-north-1:123456789012:abc/v1/*"


@pytest.mark.parametrize("payload_format", PAYLOAD_FORMATS)
def test_invalid_key_is_refused(payload_format: str, registry: Registry) -> None:
    tenant_id = registry.add_tenant()
    now_ms = time.time_ns() // 1_000_000
    refused = [
        registry.add_key(tenant_id, status={"S": "revoked"}),
        registry.add_key(tenant_id, expires_at={"N": str(now_ms)}),
        registry.add_key("nobody"),
        apikey.mint(),
        "ibx_malformed",
        "",
    ]
    for key in refused:
        assert_refused(read_event(payload_format, key))
    assert is_allowed(read_event(payload_format, registry.add_key(tenant_id, expires_at={"N": str(now_ms + 60_000)})))


@pytest.mark.parametrize("payload_format", PAYLOAD_FORMATS)
def test_suspended_or_deleted_tenant_is_denied(payload_format: str, registry: Registry) -> None:
    suspended = registry.add_tenant(status={"S": "SUSPENDED"})
    deleted = registry.add_tenant(active={"S": "false"})
    for tenant_id in (suspended, deleted):
        event = read_event(payload_format, registry.add_key(tenant_id))
        assert not is_allowed(event)
        assert handler(event, None)["context"]["tenant_id"] == tenant_id
    if payload_format in FORMATS_WITH_POLICY:
        assert handler(event, None)["principalId"] == deleted
        (statement,) = handler(event, None)["policyDocument"]["Statement"]
        assert statement == {"Action": "execute-api:Invoke", "Effect": "Deny", "Resource": STAGES[payload_format]}


def test_token_may_be_bearer_basic_or_bare(registry: Registry) -> None:
    key = registry.add_key(registry.add_tenant())
    event = read_event("rest_token", key)
    for token in (key, f"Bearer {key}", f"bearer  {key}", basic(key, ""), basic("zapier", key)):
        assert is_allowed(event | {"authorizationToken": token}), token
    for invalid_token in (f"Token {key}", f"{key} {key}", basic(key, registry.add_key(registry.add_tenant())), None):
        assert_refused(event | {"authorizationToken": invalid_token})
    del event["authorizationToken"]
    assert_refused(event)


def test_header_names_are_case_insensitive(registry: Registry) -> None:
    key = registry.add_key(registry.add_tenant())
    for name, value in (("AUTHORIZATION", f"Bearer {key}"), ("x-Api-KEY", key), ("authorization", basic(key, "x"))):
        assert is_allowed(rest_request_with({"Host": ["a"], name: [value]})), name
        # Single values, as in format 1.0 of HTTP APIs.
        assert is_allowed(read_event("rest_request", "") | {"multiValueHeaders": None, "headers": {name: value}}), name


def test_repeated_header_is_refused(registry: Registry) -> None:
    key = registry.add_key(registry.add_tenant())
    other = registry.add_key(registry.add_tenant())
    for second in (key, other, "anything"):
        assert_refused(rest_request_with({"Authorization": [f"Bearer {key}", f"Bearer {second}"]}))
        assert_refused(rest_request_with({"Authorization": [f"Bearer {key}"], "authorization": [f"Bearer {second}"]}))
        assert_refused(rest_request_with({"X-API-Key": [key, second]}))
        event = read_event("http_api_2", f"{key},Bearer {second}")
        assert_refused(event)


@pytest.mark.parametrize("payload_format", ["rest_request", "http_api_2"])
def test_different_keys_in_two_headers_are_refused(payload_format: str, registry: Registry) -> None:
    key = registry.add_key(registry.add_tenant())
    event = read_event(payload_format, key)
    for member in ("headers", "multiValueHeaders"):
        if member in event:
            one_or_many = [apikey.mint()] if member == "multiValueHeaders" else apikey.mint()
            event[member] |= {"x-api-key": one_or_many}
    assert_refused(event)


@pytest.mark.parametrize("payload_format", ["http_api_1", "http_api_2"])
def test_key_outside_of_the_identity_sources_is_refused(payload_format: str, registry: Registry) -> None:
    key = registry.add_key(registry.add_tenant())
    event = read_event(payload_format, "undefined")
    event["headers"]["x-api-key"] = key
    assert_refused(event)
    sources = ["Bearer undefined", key]
    assert is_allowed(event | {"identitySource": sources if payload_format == "http_api_2" else ",".join(sources)})
    # Without identity sources API Gateway caches nothing.
    assert is_allowed(event | {"identitySource": None})


@pytest.mark.parametrize("payload_format", PAYLOAD_FORMATS)
def test_event_without_headers_is_refused(payload_format: str) -> None:
    event = read_event(payload_format, "KEY") | {"headers": None, "multiValueHeaders": None, "authorizationToken": None}
    assert_refused(event)


def test_revoked_key_is_refused_at_once(registry: Registry) -> None:
    key = registry.add_key(registry.add_tenant())
    assert is_allowed(read_event("rest_token", key))
    registry.revoke(key)
    assert_refused(read_event("rest_token", key))


def test_handler_makes_two_consistent_reads(registry: Registry) -> None:
    calls = []

    def record_call(params: dict[str, Any], model: Any, **_: Any) -> None:
        calls.append((model.name, params["TableName"], params["ConsistentRead"]))

    lambda_handler._client().meta.events.register("before-parameter-build.dynamodb", record_call)
    assert is_allowed(read_event("rest_token", registry.add_key(registry.add_tenant())))
    prefix = registry.prefix
    assert calls == [("GetItem", f"{prefix}TenantApiKeys", True), ("GetItem", f"{prefix}Tenants", True)]


@pytest.mark.parametrize("payload_format", PAYLOAD_FORMATS)
def test_context_contains_a_seal_if_there_is_a_secret(
    payload_format: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INBOX_AUTHORIZER_SECRET", SECRET)
    tenant_id = registry.add_tenant(organization_name={"S": "Acme"}, rate_limit={"N": "7"})
    key = registry.add_key(
        tenant_id, key_id={"S": "a-key"}, expires_at={"N": "4102444800123"}, last_used_at={"N": "1732140249123"}
    )
    before_ms = time.time_ns() // 1_000_000
    context = handler(read_event(payload_format, key), None)["context"]
    sealed = sealing.open_seal(context["principal"], apikey.hash_of(key), SECRET)
    assert sealed is not None
    scopes = frozenset({"events:write", "inbox:read"})
    assert sealed.record == KeyRecord(
        Principal(tenant_id, "Acme", True, "a-key", scopes, rate_limit=7), 4102444800123, 1732140249123
    )
    assert before_ms <= sealed.sealed_at_ms <= time.time_ns() // 1_000_000
    assert all(isinstance(value, str) for value in context.values())


@pytest.mark.parametrize(
    "change",
    [
        {"type": "COOKIE"},
        {"version": "3.0"},
        {"methodArn": "arn:aws:s3:::bucket/prod/GET/"},
        {"methodArn": "arn:aws:execute-api:us-east-1:123456789012:abcdef1234"},
        {"methodArn": "arn:aws:execute-api:us-east-1:123456789012:abcdef1234/*/GET/"},
        {"methodArn": None},
        {"type": None},
    ],
)
def test_unknown_event_is_an_error(change: dict[str, Any], registry: Registry) -> None:
    key = registry.add_key(registry.add_tenant())
    with pytest.raises(ValueError, match=r"^Not (an event|the ARN)"):
        handler(read_event("rest_request", key) | change, None)


@pytest.mark.parametrize("payload_format", PAYLOAD_FORMATS)
def test_unreachable_dynamodb_is_an_error(
    payload_format: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = registry.add_key(registry.add_tenant())
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
    with pytest.raises(BotoCoreError):
        handler(read_event(payload_format, key), None)


def test_missing_table_is_an_error(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INBOX_TABLE_PREFIX", "elsewhere-")
    with pytest.raises(ClientError, match="ResourceNotFound"):
        handler(read_event("http_api_2", registry.add_key(registry.add_tenant())), None)


def test_malformed_key_is_refused_without_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
    assert_refused(read_event("http_api_2", apikey.mint()[:-1] + "!"))
    assert_refused(read_event("http_api_2", "ibx_" + "0" * 49))


def test_key_is_neither_logged_nor_returned(
    registry: Registry,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INBOX_AUTHORIZER_SECRET", SECRET)
    caplog.set_level(logging.DEBUG)
    key = registry.add_key(registry.add_tenant())
    responses = [handler(read_event(payload_format, key), None) for payload_format in PAYLOAD_FORMATS]
    registry.revoke(key)
    with pytest.raises(Exception, match="Unauthorized") as raised:
        handler(read_event("rest_token", key), None)
    assert caplog.records
    out, err = capfd.readouterr()
    for text in (caplog.text, out, err, json.dumps(responses), repr(raised.value)):
        assert key not in text
