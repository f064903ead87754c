"""Numbered SQL files, each run once, in order. Never change a released file: add another one."""

from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib import resources
from typing import Any

import apsw

from inbox.domain.tenants import email_key
from inbox.errors import StoreUnavailable


def migrate(connection: apsw.Connection) -> None:
    """Updates the database to this release's schema. Safe to repeat, and to run in several processes at once."""
    scripts = _scripts()
    if not scripts:
        raise StoreUnavailable("This installation lacks its migrations.")
    if _version(connection) == len(scripts):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        done = _version(connection)
        if done > len(scripts):
            raise _newer()
        _run(connection, scripts[done:])
        connection.execute(f"PRAGMA user_version = {len(scripts)}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def check_schema(connection: apsw.Connection) -> None:
    """Raises StoreUnavailable unless the database has this release's schema."""
    version = _version(connection)
    if version > len(_scripts()):
        raise _newer()
    if version == 0:
        raise StoreUnavailable(
            f"{connection.filename} is not a database of Polling Inbox. Check INBOX_STORE, or {_init(connection)}."
        )
    check_not_older(connection)


def check_not_older(connection: apsw.Connection) -> None:
    """Raises StoreUnavailable if the database has the schema of an earlier release. An empty one passes."""
    if 0 < _version(connection) < len(_scripts()):
        raise StoreUnavailable(
            f"{connection.filename} has the schema of an earlier release. After a migration, that release cannot open "
            f"it. To migrate it, {_init(connection)}."
        )


def is_ours(connection: apsw.Connection) -> bool:
    """Returns True if this release or an earlier one created the database.

    Raises StoreUnavailable if a newer one did.
    """
    # In one transaction: another process may be migrating the database.
    with connection:
        version, names = _version(connection), _names(connection)
    if version > len(_scripts()):
        raise _newer()
    with closing(apsw.Connection(":memory:")) as sample:
        _run(sample, _scripts()[:version])
        # Other programs may add tables, as Litestream does.
        return version > 0 and _names(sample) <= names


def check_ours_or_empty(connection: apsw.Connection) -> None:
    """Raises StoreUnavailable if another program or a newer release created the database."""
    # Litestream may have added its tables first.
    is_empty = _version(connection) == 0 and all(name.startswith("_litestream_") for _, _, name in _names(connection))
    if not is_empty and not is_ours(connection):
        raise StoreUnavailable(f"{connection.filename} is not a database of Polling Inbox. Check INBOX_STORE.")


def _run(connection: apsw.Connection, scripts: Sequence[str]) -> None:
    # SQLite's lower() only knows ASCII.
    connection.create_scalar_function("email_key", _email_key, 1, deterministic=True)
    for script in scripts:
        connection.execute(script)


def _names(connection: apsw.Connection) -> set[tuple[Any, ...]]:
    return set(connection.execute("SELECT type, name, tbl_name FROM sqlite_schema"))


def _email_key(*emails: Any) -> str | None:
    return None if emails == (None,) else email_key(*emails)


def _init(connection: apsw.Connection) -> str:
    return f"run `inbox init` with INBOX_STORE=sqlite:///{connection.filename}"


def _newer() -> StoreUnavailable:
    return StoreUnavailable("A newer release of Polling Inbox created the database. Install that release.")


@cache
def _scripts() -> list[str]:
    files = [file for file in resources.files(__name__).iterdir() if file.name.endswith(".sql")]
    return [file.read_text("utf-8") for file in sorted(files, key=lambda file: file.name)]


def _version(connection: apsw.Connection) -> int:
    return int(connection.pragma("user_version"))
