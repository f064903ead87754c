"""What the commands share: the settings in force, and the store they name."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from inbox.app import create_registry, open_store
from inbox.registry import Registry
from inbox.settings import Settings, read_settings


def settings_in_force() -> Settings:
    return read_settings(os.environ, on_terminal=sys.stderr.isatty())


@contextmanager
def open_registry() -> Iterator[Registry]:
    store = open_store(settings_in_force())
    try:
        yield create_registry(store)
    finally:
        store.close()
