"""What the commands share: the settings in force, and what an operator handles in the store they name."""

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from inbox.services.keys import KeyService
from inbox.services.tenants import TenantService
from inbox.settings import Settings, read_settings, variable_of
from inbox.store.factory import open_existing_store, open_or_create_store
from inbox.store.interface import Store

OPERATOR = "cli"
"""Who changes tenants by command, as the audit trail names them."""


def settings_in_force(**given: Any) -> Settings:
    """From the environment, and above it from what was given on the command line, read just as strictly."""
    options = {variable_of(name): str(value) for name, value in given.items() if value is not None}
    return read_settings(os.environ | options, on_terminal=sys.stderr.isatty())


@contextmanager
def open_registry(*, create: bool = True) -> Iterator[TenantService]:
    with closing(_open_store(create=create)) as store:
        yield TenantService(store.tenants, store.now_ms)


@contextmanager
def open_key_service(*, create: bool = True) -> Iterator[KeyService]:
    with closing(_open_store(create=create)) as store:
        yield key_service_of(store)


def _open_store(*, create: bool) -> Store:
    settings = settings_in_force()
    return open_or_create_store(settings) if create else open_existing_store(settings)


def key_service_of(store: Store) -> KeyService:
    return KeyService(store.keys, store.tenants, store.now_ms)
