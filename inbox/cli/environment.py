"""What the commands share: the settings in force, and the registry of the store they name."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from inbox.clock import now_ms
from inbox.registry import Registry
from inbox.settings import Settings, read_settings
from inbox.store.opening import open_store


def settings_in_force() -> Settings:
    return read_settings(os.environ, on_terminal=sys.stderr.isatty())


@contextmanager
def open_registry() -> Iterator[Registry]:
    store = open_store(settings_in_force())
    try:
        yield Registry(store.tenants, store.keys, now_ms)
    finally:
        store.close()
