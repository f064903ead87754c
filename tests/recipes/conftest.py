"""A key of a new tenant for each recipe."""

import uuid
from collections.abc import Callable, Sequence

import pytest

from tests.service import Service


@pytest.fixture
def new_key(running_service: Service) -> Callable[[Sequence[str]], str]:
    """Returns a function that creates a tenant, and a key with the given scopes."""

    def create(scopes: Sequence[str]) -> str:
        options = [word for scope in scopes for word in ("--scope", scope)]
        return running_service.create_key(f"recipe-{uuid.uuid4().hex[:8]}", *options)

    return create
