"""Which engine a setting stands for."""

from pathlib import Path
from typing import TYPE_CHECKING

from inbox.settings import Settings
from inbox.store.port import SourceStore, Store, TargetStore

if TYPE_CHECKING:
    from inbox.store.dynamodb import DynamoDBStore
    from inbox.store.sqlite import SQLiteStore


def open_store(settings: Settings) -> Store:
    return _sqlite(settings.sqlite_path, settings) if settings.sqlite_path is not None else _dynamodb(settings)


def open_made_store(settings: Settings) -> Store:
    """One that was opened before. It is there at once, whatever is wrong with its disk, and makes nothing anew."""
    path = settings.sqlite_path
    return _sqlite(path, settings, made=True) if path is not None else _dynamodb(settings)


def open_source(path: Path, settings: Settings) -> SourceStore:
    """What `inbox copy` reads from."""
    return _sqlite(path, settings)


def open_target(settings: Settings) -> TargetStore:
    """What `inbox copy` writes to."""
    return _dynamodb(settings)


# Imported where they are used: boto3 takes longer to load than the embedded store takes to open.


def _sqlite(path: Path, settings: Settings, *, made: bool = False) -> "SQLiteStore":
    from inbox.store.sqlite import SQLiteStore

    return SQLiteStore(path, settings.max_deliveries, made=made)


def _dynamodb(settings: Settings) -> "DynamoDBStore":
    from inbox.store.dynamodb import DynamoDBStore
    from inbox.store.dynamodb.connection import Connection

    return DynamoDBStore(Connection(settings.table_prefix, settings.threads), settings.max_deliveries)
