"""Opens the store that INBOX_STORE names.

Engines are imported where they are used: boto3 takes longer to load than the embedded store takes to open.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from inbox.clock import Clock
from inbox.errors import NotAllowed, StoreUnavailable
from inbox.settings import Settings
from inbox.shared_integer import SharedInteger
from inbox.store.interface import Store

if TYPE_CHECKING:
    from inbox.store.dynamodb import DynamoDBStore


def open_store(
    settings: Settings,
    *,
    create: bool = True,
    upgrade: bool = True,
    clock: Clock | None = None,
    needed_disk_bytes: SharedInteger | None = None,
) -> Store:
    """Returns the store. Creates a missing SQLite store, and migrates an earlier release's unless `upgrade` is False.

    Without `create` it does not touch the disk, so that a worker starts even while the disk fails. Then, and without
    `upgrade`, a store of an earlier release raises StoreUnavailable, at the latest when it is used.
    """
    if settings.sqlite_path is None:
        return _dynamodb(settings, clock)
    from inbox.store.sqlite import SQLiteStore

    return SQLiteStore(
        settings.sqlite_path,
        settings.max_deliveries,
        create=create,
        upgrade=upgrade,
        clock=clock,
        needed_disk_bytes=needed_disk_bytes,
    )


def open_existing_store(settings: Settings) -> Store:
    """Returns the store for a command, unmigrated. Raises StoreUnavailable if its SQLite file is missing."""
    path = settings.sqlite_path
    if path is not None and not path.exists():
        raise StoreUnavailable(
            f"{path.absolute()} does not exist. Check INBOX_STORE, or run `inbox init` to create it."
        )
    return open_store(settings, create=False)


def open_tables(settings: Settings) -> "DynamoDBStore":
    """Returns what `inbox init` creates or upgrades on DynamoDB."""
    return _dynamodb(settings)


def back_up(settings: Settings, file: Path, on_progress: Callable[[int, int], object]) -> None:
    """Copies the embedded store, which may be in use. `on_progress` is called with the copied and all pages."""
    from inbox.store.sqlite import backup

    backup.back_up(_embedded(settings), file, on_progress)


def restore(settings: Settings, file: Path, on_progress: Callable[[int, int], object]) -> tuple[Path, Path | None]:
    """Replaces the embedded store by a backup. Returns its path, and where the previous database is kept."""
    from inbox.store.sqlite import backup

    path = _embedded(settings)
    return path.absolute(), backup.restore(path, file, on_progress)


def _embedded(settings: Settings) -> Path:
    if settings.sqlite_path is None:
        raise NotAllowed("This command is for SQLite. On DynamoDB, use point-in-time recovery and AWS Backup.")
    return settings.sqlite_path


def _dynamodb(settings: Settings, clock: Clock | None = None) -> "DynamoDBStore":
    from inbox.store.dynamodb import DynamoDBStore
    from inbox.store.dynamodb.connection import Connection

    connection = Connection(settings.table_prefix, settings.threads)
    return DynamoDBStore(
        connection,
        settings.max_deliveries,
        retention_days=settings.retention_days,
        clock=clock,
        settle_ms=settings.settle_ms or 0,
        list_delivered=settings.list_delivered == "on",
    )
