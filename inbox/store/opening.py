"""Which engine a setting stands for."""

from inbox.settings import Settings
from inbox.store.port import Store
from inbox.store.sqlite import SQLiteStore


def open_store(settings: Settings) -> Store:
    return SQLiteStore(settings.sqlite_path)
