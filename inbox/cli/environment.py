"""The settings, the store and the services that commands use."""

import os
import sys
from contextlib import closing
from typing import Any, TypeVar

import click

from inbox.services.keys import KeyService
from inbox.services.tenants import TenantService
from inbox.settings import Settings, read_settings, variable_of
from inbox.store.factory import open_existing_store, open_store
from inbox.store.interface import Store

OPERATOR = "cli"
"""The author of changes in the audit log."""
OpenStore = TypeVar("OpenStore", bound=Store)


def read_environment(**options: Any) -> Settings:
    """Returns the settings from the environment. Options that are not None take precedence."""
    given = {variable_of(name): str(value) for name, value in options.items() if value is not None}
    return read_settings(os.environ | given, on_terminal=sys.stderr.isatty())


def close_with_command(store: OpenStore) -> OpenStore:
    """Returns the store, and closes it when the command ends."""
    return click.get_current_context().with_resource(closing(store))


def open_tenants(*, create_store: bool = False) -> TenantService:
    settings = read_environment()
    if create_store and settings.sqlite_path is not None and not settings.sqlite_path.exists():
        click.echo(f"Creating the store {settings.sqlite_path}.", err=True)
    # Without a migration: a service of an earlier release may be running on the store, and could not restart after it.
    store = close_with_command(open_store(settings, upgrade=False) if create_store else open_existing_store(settings))
    return TenantService(store.tenants, store.now_ms)


def open_keys() -> KeyService:
    store = close_with_command(open_existing_store(read_environment()))
    return KeyService(store.keys, store.tenants, store.now_ms)
