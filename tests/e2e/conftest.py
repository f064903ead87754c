"""A new tenant for each test, on the service that the tests share."""

import secrets

import pytest

from tests.e2e.consumers import ALL_SCOPES, Client
from tests.service import Service


@pytest.fixture
def tenant(running_service: Service) -> Client:
    return Client(running_service, running_service.create_key(f"t-{secrets.token_hex(8)}", *ALL_SCOPES))
