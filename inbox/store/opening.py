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


def open_source(path: Path, settings: Settings) -> SourceStore:
    """What `inbox copy` reads from."""
    return _sqlite(path, settings)


def open_target(settings: Settings) -> TargetStore:
    """What `inbox copy` writes to."""
    return _dynamodb(settings)


# Imported where they are used: boto3 takes longer to load than the embedded store takes to open.


def _sqlite(path: Path, settings: Settings) -> "SQLiteStore":
    from inbox.store.sqlite import SQLiteStore

    return SQLiteStore(path, settings.max_deliveries)


def _dynamodb(settings: Settings) -> "DynamoDBStore":
    from inbox.store.dynamodb import DynamoDBStore
    from inbox.store.dynamodb.connection import Connection

    return DynamoDBStore(Connection(settings.table_prefix, settings.threads), settings.max_deliveries)
