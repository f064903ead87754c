"""Recorded events of API Gateway, and a registry on moto."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from authorizer import lambda_handler
from tests.authorizer.registry import Registry

EVENTS = Path(__file__).with_name("events")
PAYLOAD_FORMATS = sorted(file.stem for file in EVENTS.glob("*.json"))
FORMATS_WITH_POLICY = [payload_format for payload_format in PAYLOAD_FORMATS if payload_format != "http_api_2"]
SECRET = "of the authorizer and the service"


def read_event(payload_format: str, key: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / f"{payload_format}.json").read_text().replace("KEY", key))
    return event


@pytest.fixture(scope="session")
def registry(moto_url: str) -> Iterator[Registry]:
    registry = Registry(moto_url)
    yield registry
    registry.client.close()


@pytest.fixture
def on_registry(registry: Registry, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the handler read the registry with a new client, as after a cold start."""
    request.getfixturevalue("on_moto")
    monkeypatch.setenv("INBOX_TABLE_PREFIX", registry.prefix)
    monkeypatch.delenv("INBOX_AUTHORIZER_SECRET", raising=False)
    lambda_handler._client.cache_clear()
    yield
    if lambda_handler._client.cache_info().currsize:
        lambda_handler._client().close()
    lambda_handler._client.cache_clear()
