"""The commands on the store as a whole: init, config, backup, restore, copy, purge, backlog and recount."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from inbox.cli.environment import close_with_command, read_environment
from inbox.cli.output import print_rows, progress
from inbox.cli.parameters import TENANT_ID
from inbox.domain import exact_json
from inbox.domain.timestamps import format_timestamp
from inbox.errors import StoreUnavailable
from inbox.services import stats
from inbox.services.backlog import find_backlog
from inbox.services.retention import Retention
from inbox.services.store_copy import StoreCopy
from inbox.settings import DYNAMODB, SQLITE, TABLE_PREFIX, Settings
from inbox.stop_signals import interrupt_on_stop_signals
from inbox.store import factory

Command = Callable[..., Any]
_BACKLOG_COLUMNS = ("tenant_id", "inbox", "oldest_at", "age_seconds")


@click.command()
@click.option("--streams", is_flag=True, help="Also enable DynamoDB Streams on every table.")
def init(*, streams: bool) -> None:
    """Create the store, or migrate it to this release. Safe to repeat.

    With SQLite this is the database file, with DynamoDB the tables. Tables of CloudFormation are only checked.
    """
    settings = read_environment()
    if settings.sqlite_path is None:
        store = close_with_command(factory.open_tables(settings))
        store.init(streams=streams, report=partial(click.echo, err=True))
    elif streams:
        raise click.UsageError("--streams is for DynamoDB. Set INBOX_STORE=dynamodb://.")
    else:
        close_with_command(factory.open_store(settings)).init()
    click.echo(f"{settings.store} is ready.", err=True)


@click.command()
def config() -> None:
    """Print every setting and its value. Secrets are hidden."""
    for name, value in read_environment().as_variables().items():
        click.echo(f"{name}={value}")


def _new_file(_context: click.Context, _argument: click.Parameter, text: str) -> Path:
    if text in ("", "-") or text.endswith("/") or Path(text).is_dir():
        raise click.BadParameter("must be the path of a new file.")
    return Path(text)


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yields a function that shows how much of a total is done."""
    with progress(label, length=0) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield show


@click.command()
@click.argument("file", callback=_new_file)
def backup(file: Path) -> None:
    """Copy the embedded store into a new FILE, and print its path.

    The service may run meanwhile.
    """
    settings = read_environment()
    interrupt_on_stop_signals()
    with _progress("Copying the database") as show:
        factory.back_up(settings, file, show)
    click.echo(file)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Replace the embedded store with a backup.

    Keeps the previous database beside it. Stop the service first.
    """
    settings = read_environment()
    interrupt_on_stop_signals()
    with _progress("Copying the backup") as show:
        path, kept = factory.restore(settings, file, show)
    click.echo(f"{path} is restored.", err=True)
    click.echo(f"The previous database is kept as {kept}." if kept else "There was no database before.", err=True)


def _store_options(_context: click.Context, _option: click.Parameter, url: str) -> dict[str, str]:
    """Returns the settings for the URL of a store."""
    path = Path(url.removeprefix(SQLITE))
    if url.startswith(SQLITE) and path.is_file():
        return {"store": url}
    if url.startswith(SQLITE):
        raise click.BadParameter(f"{path} is not a file. Check the path, or create it: INBOX_STORE={url} inbox init")
    prefix = url.removeprefix(DYNAMODB)
    if not url.startswith(DYNAMODB) or not re.fullmatch(TABLE_PREFIX, prefix, re.ASCII):
        raise click.BadParameter(f"{url!r} is none of {SQLITE}PATH, {DYNAMODB} and {DYNAMODB}PREFIX.")
    return {"store": DYNAMODB, **({"table_prefix": prefix} if prefix else {})}


def _is_same_store(one: Settings, other: Settings) -> bool:
    if one.sqlite_path is not None and other.sqlite_path is not None:
        return one.sqlite_path.samefile(other.sqlite_path)
    return (one.engine, one.table_prefix) == (other.engine, other.table_prefix)


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Makes an error of the store tell which of the two stores it is."""
    try:
        yield
    except StoreUnavailable as error:
        raise click.ClickException(f"{option}: {error}") from error


def _store_option(name: str, parameter: str, description: str) -> Callable[[Command], Command]:
    return click.option(name, parameter, metavar="URL", required=True, callback=_store_options, help=description)


@click.command()
@_store_option("--from", "source", "The store to read: sqlite:///PATH, dynamodb:// or dynamodb://PREFIX.")
@_store_option("--to", "target", "The store to add to, as in --from. It must exist: see `inbox init`.")
def copy(source: dict[str, str], target: dict[str, str]) -> None:
    """Copy a store to another one, of any engine.

    Copies tenants, keys, inboxes and events. Safe to repeat. `dynamodb://` means the tables with INBOX_TABLE_PREFIX.
    """
    source_settings, target_settings = read_environment(**source), read_environment(**target)
    if _is_same_store(source_settings, target_settings):
        raise click.UsageError("--from and --to are the same store.")
    source_store = close_with_command(factory.open_existing_store(source_settings))
    target_store = close_with_command(factory.open_existing_store(target_settings))
    with _naming("--from"):
        tenants = source_store.tenants.all()
    with _naming("--to"):
        target_store.check()
    with _progress("Copying") as show:
        copied = StoreCopy(source_store, target_store, target_store.now_ms).copy(show)
    # The target counts only what happens there.
    for tenant in tenants:
        stats.recount(target_store, tenant.tenant_id, target_settings.retention_days)
    total = f"{copied.tenants} tenants, {copied.keys} keys, {copied.inboxes} inboxes, {copied.events} events"
    click.echo(f"{total}, {copied.written} of them new")
    if copied.too_large:
        raise click.ClickException("Not copied, too large for DynamoDB: " + ", ".join(copied.too_large))


@click.command()
def purge() -> None:
    """Delete expired events and print the number of rows. A running service does so once a minute."""
    store = close_with_command(factory.open_existing_store(read_environment()))
    with progress("Deleting expired events", Retention(store.events, store.now_ms).purge()) as steps:
        deleted = sum(steps)
    click.echo(deleted)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object about the oldest event.")
def backlog(*, as_json: bool) -> None:
    """List the inboxes with undelivered events.

    Sorted by the age of the oldest event.
    """
    store = close_with_command(factory.open_existing_store(read_environment()))
    oldest_first = sorted(find_backlog(store, store.now_ms), key=lambda inbox: inbox.timestamp_ms)
    if as_json:
        oldest = oldest_first[0] if oldest_first else None
        metric = {
            "event": "backlog",
            "oldest_undelivered_seconds": oldest.age_seconds if oldest else 0,
            "tenant_id": oldest.tenant_id if oldest else None,
            "inbox": oldest.inbox if oldest else None,
            "waiting_inboxes": len(oldest_first),
        }
        click.echo(exact_json.dump(metric))
        return
    rows = [asdict(each) | {"oldest_at": format_timestamp(each.timestamp_ms)} for each in oldest_first]
    print_rows(rows, _BACKLOG_COLUMNS, as_json=False)
    if not rows:
        click.echo("No undelivered events.", err=True)


@click.command()
@click.argument("tenant_id", required=False, metavar="[TENANT]", type=TENANT_ID)
def recount(tenant_id: str | None) -> None:
    """Recompute the counters of GET /stats. Prints how many changed.

    Use it after counts were lost. It counts the stored events: erased ones no longer count, nor do all but the last
    delivery of replayed ones. On DynamoDB, stop the service first.
    """
    settings = read_environment()
    store = close_with_command(factory.open_existing_store(settings))
    tenants = [each.tenant_id for each in store.tenants.all()] if tenant_id is None else [tenant_id]
    changes = (stats.recount(store, each, settings.retention_days) for each in tenants)
    with progress("Counting", changes, length=len(tenants)) as counted:
        changed = sum(counted)
    click.echo(changed)
    click.echo(f"{changed} counters changed.", err=True)
