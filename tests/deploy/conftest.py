"""The path of the checkout, and a key of a new tenant for each test of `deploy/smoke`."""

import uuid
from pathlib import Path

import pytest

from tests.service import Service

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def key(running_service: Service) -> str:
    return running_service.create_key(f"smoke-{uuid.uuid4().hex[:8]}", "--scope", "all")
