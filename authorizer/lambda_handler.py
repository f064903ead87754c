"""API Gateway's authorizer: REST APIs (TOKEN and REQUEST), and HTTP APIs in both of their formats.

It has no cache: API Gateway has one, and what is sealed must not be older than it says.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import boto3
from botocore.config import Config

from authorizer import apikey, credentials, sealing
from authorizer.items import Item, find_key
from authorizer.resolver import KeyRecord, Principal, resolve

EventPage = tuple[Principal, dict[str, Any]]
"""Whose key it is, and what is passed on of it: plain texts, since REST APIs take nothing deeper."""

_METHOD_ARN = re.compile(r"(arn:aws[a-z-]*:execute-api:[a-z0-9-]+:[0-9]+:[a-z0-9]+/[\w$-]+)/.*", re.ASCII | re.DOTALL)


# Less patient than the service: API Gateway waits ten seconds for an authorizer, and both reads have to fit in.
_CONFIG = Config(
    connect_timeout=1,
    read_timeout=1,
    retries={"mode": "standard", "total_max_attempts": 2},
    tcp_keepalive=True,
)


class Lookup:
    def __init__(self, table_prefix: str, region: str | None) -> None:
        self._table_prefix = table_prefix
        self.client: Any = boto3.client("dynamodb", region_name=region, config=_CONFIG)

    def find(self, key_hash: str) -> KeyRecord | None:
        return find_key(self._get, key_hash)

    def _get(self, table: str, key: Item) -> Item | None:
        answer = self.client.get_item(TableName=self._table_prefix + table, Key=key, ConsistentRead=True)
        item: Item | None = answer.get("Item")
        return item


@dataclass(frozen=True, slots=True)
class _Environment:
    lookup: Lookup
    secret: str


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 - Lambda gives it
    match event:
        case {"type": "REQUEST", "version": "2.0", "headers": headers}:
            return _simple_answer(_resolved(_key_in(event, headers)))
        case {"type": "REQUEST", "methodArn": str(arn)} if event.get("version", "1.0") == "1.0":
            headers = event.get("multiValueHeaders") or event.get("headers")
            return _policy_answer(_whole_stage(arn), _resolved(_key_in(event, headers)))
        case {"type": "TOKEN", "methodArn": str(arn)}:
            token = event.get("authorizationToken")
            return _policy_answer(_whole_stage(arn), _resolved(credentials.find_key_in(token)))
    raise ValueError("This is no event of an API Gateway authorizer.")


def _simple_answer(found: EventPage | None) -> dict[str, Any]:
    if found is None:
        return {"isAuthorized": False, "context": {}}
    principal, context = found
    return {"isAuthorized": principal.tenant_active, "context": context}


def _policy_answer(resource: str, found: EventPage | None) -> dict[str, Any]:
    if found is None:
        # The one text that API Gateway makes a 401 of.
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
    """Not the method alone: API Gateway keeps the policy, and goes by it when the same key calls another method."""
    found = _METHOD_ARN.fullmatch(method_arn)
    if found is None:
        raise ValueError("This is no ARN of a method.")
    return f"{found[1]}/*"


def _key_in(event: Mapping[str, Any], headers: Mapping[str, str | list[str]] | None) -> str | None:
    together: dict[str, list[str]] = {}
    for name, value in (headers or {}).items():
        together.setdefault(name.lower(), []).extend([value] if isinstance(value, str) else value)
    # Joined, as the service's own server and HTTP APIs do it: then a header that came twice holds no key.
    authorization, x_api_key = (",".join(together.get(name, ())) for name in ("authorization", "x-api-key"))
    key = credentials.find_key(authorization, x_api_key)
    return key if key is None or _is_identity(key, event.get("identitySource")) else None


def _is_identity(key: str, sources: str | Iterable[str] | None) -> bool:
    """Whether the answer would be kept for this key, and not for another header that anybody may send."""
    if not sources:
        return True
    values = sources.split(",") if isinstance(sources, str) else sources
    return any(credentials.find_key_in(value) == key for value in values)


def _resolved(key: str | None) -> EventPage | None:
    if key is None:
        return None
    environment = _environment()
    # Before the reads, so that what is sealed is never older than it says.
    now_ms = time.time_ns() // 1_000_000
    record = resolve(key, environment.lookup.find, now_ms)
    if record is None:
        return None
    context = _context(record.principal)
    if environment.secret:
        context["principal"] = sealing.seal(apikey.hash_of(key), record, now_ms, environment.secret)
    return record.principal, context


def _context(principal: Principal) -> dict[str, Any]:
    return {
        "tenant_id": principal.tenant_id,
        "tenant_name": principal.tenant_name,
        "key_id": principal.key_id,
        "scopes": " ".join(sorted(principal.scopes)),
    }


@cache
def _environment() -> _Environment:
    """Read at the first call, and kept for as long as the Lambda stays warm."""
    # boto3 itself reads only AWS_DEFAULT_REGION, for which this leaves room.
    lookup = Lookup(os.environ.get("INBOX_TABLE_PREFIX", ""), os.environ.get("AWS_REGION"))
    return _Environment(lookup, sealing.parse_secret(os.environ.get("INBOX_AUTHORIZER_SECRET", "")))
