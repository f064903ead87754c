"""Lambda authorizer for API Gateway: REST APIs (TOKEN and REQUEST) and HTTP APIs (formats 1.0 and 2.0).

It caches no keys: API Gateway caches its responses, and a seal must not be older than it says.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import Any

import boto3
from botocore.config import Config

from authorizer import apikey, credentials, sealing
from authorizer.items import Item, read_key_record
from authorizer.resolver import Principal, resolve

Resolved = tuple[Principal, dict[str, Any]]
"""The principal, and the context for the service. REST APIs accept only flat values in it."""

_METHOD_ARN = re.compile(r"(arn:aws[a-z-]*:execute-api:[a-z0-9-]+:[0-9]+:[a-z0-9]+/[\w$-]+)/.*", re.ASCII | re.DOTALL)

# Shorter timeouts than the service: API Gateway waits ten seconds for an authorizer, which makes two reads.
_CONFIG = Config(
    connect_timeout=1,
    read_timeout=1,
    retries={"mode": "standard", "total_max_attempts": 2},
    tcp_keepalive=True,
)


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 - Lambda gives it
    match event:
        case {"type": "REQUEST", "version": "2.0", "headers": headers}:
            return _simple_response(_resolve(_key_in(event, headers)))
        case {"type": "REQUEST", "methodArn": str(arn)} if event.get("version", "1.0") == "1.0":
            headers = event.get("multiValueHeaders") or event.get("headers")
            return _policy_response(_whole_stage(arn), _resolve(_key_in(event, headers)))
        case {"type": "TOKEN", "methodArn": str(arn)}:
            token = event.get("authorizationToken")
            return _policy_response(_whole_stage(arn), _resolve(credentials.find_key_in_header(token)))
    raise ValueError("Not an event of an API Gateway authorizer.")


def _simple_response(found: Resolved | None) -> dict[str, Any]:
    if found is None:
        return {"isAuthorized": False, "context": {}}
    principal, context = found
    return {"isAuthorized": principal.tenant_active, "context": context}


def _policy_response(resource: str, found: Resolved | None) -> dict[str, Any]:
    if found is None:
        # API Gateway responds with 401 to exactly this message.
        raise Exception("Unauthorized")
    principal, context = found
    effect = "Allow" if principal.tenant_active else "Deny"
    statement = {"Action": "execute-api:Invoke", "Effect": effect, "Resource": resource}
    return {
        "principalId": principal.tenant_id,
        "policyDocument": {"Version": "2012-10-17", "Statement": [statement]},
        "context": context,
    }


def _whole_stage(method_arn: str) -> str:
    """Returns the ARN of all methods of the stage: API Gateway caches the policy for the key's other requests."""
    found = _METHOD_ARN.fullmatch(method_arn)
    if found is None:
        raise ValueError("Not the ARN of a method.")
    return f"{found[1]}/*"


def _key_in(event: Mapping[str, Any], headers: Mapping[str, str | list[str]] | None) -> str | None:
    values: dict[str, list[str]] = {}
    for name, value in (headers or {}).items():
        values.setdefault(name.lower(), []).extend([value] if isinstance(value, str) else value)
    # Joined as in the service's own server and HTTP APIs: a repeated header then contains no valid key.
    authorization, x_api_key = (",".join(values.get(name, ())) for name in ("authorization", "x-api-key"))
    key = credentials.find_key_in_headers(authorization, x_api_key)
    return key if key is None or _is_identity(key, event.get("identitySource")) else None


def _is_identity(key: str, sources: str | Iterable[str] | None) -> bool:
    """Returns False if API Gateway caches the response by another header, which the client chooses."""
    if not sources:
        return True
    values = sources.split(",") if isinstance(sources, str) else sources
    return any(credentials.find_key_in_header(value) == key for value in values)


def _resolve(key: str | None) -> Resolved | None:
    if key is None:
        return None
    secret = sealing.parse_secret(os.environ.get("INBOX_AUTHORIZER_SECRET", ""))
    # Before the reads, so that a seal is never older than it says.
    now_ms = time.time_ns() // 1_000_000
    record = resolve(key, partial(read_key_record, _get_item), now_ms)
    if record is None:
        return None
    principal = record.principal
    context = {
        "tenant_id": principal.tenant_id,
        "tenant_name": principal.tenant_name,
        "key_id": principal.key_id,
        "scopes": " ".join(sorted(principal.scopes)),
    }
    if secret:
        context["principal"] = sealing.seal(apikey.hash_of(key), record, now_ms, secret)
    return principal, context


def _get_item(table: str, key: Item) -> Item | None:
    table_name = os.environ.get("INBOX_TABLE_PREFIX", "") + table
    item: Item | None = _client().get_item(TableName=table_name, Key=key, ConsistentRead=True).get("Item")
    return item


@cache
def _client() -> Any:
    """Returns the client, which is created at the first request and kept while the Lambda is warm."""
    # boto3 reads only AWS_DEFAULT_REGION, and does so if this is None.
    return boto3.client("dynamodb", region_name=os.environ.get("AWS_REGION"), config=_CONFIG)
