"""inbox copy"""

from contextlib import closing
from pathlib import Path

import click

from inbox.cli.environment import read_environment
from inbox.cli.output import progress
from inbox.services.stats import RecountService
from inbox.services.store_copy import StoreCopy
from inbox.settings import SQLITE
from inbox.store.factory import open_source, open_target


def _file(_context: click.Context, _option: click.Parameter, url: str) -> Path:
    path = Path(url.removeprefix(SQLITE))
    if not url.startswith(SQLITE) or not path.is_file():
        raise click.BadParameter(f"{url!r} is not {SQLITE}PATH, the path of an existing file.")
    return path


@click.command()
@click.option("--from", "source", metavar="sqlite:///PATH", required=True, callback=_file, help="The SQLite store.")
@click.option(
    "--to", "target", type=click.Choice(["dynamodb://"]), required=True, help="Its tables must exist: see `inbox init`."
)
def copy(source: Path, target: str) -> None:
    """Copy a SQLite store to DynamoDB.

    Copies tenants, keys, inboxes and events. Safe to repeat.
    """
    settings = read_environment(store=target)
    with (
        closing(open_source(source, settings)) as source_store,
        closing(open_target(settings)) as target_store,
    ):
        target_store.check()
        move = StoreCopy(source_store, target_store, target_store.now_ms)
        with progress("Copying events", length=move.count()) as bar:
            copied = move.copy(bar.update)
        # The target counts only what happens there.
        recount = RecountService(
            target_store.counters, target_store.tenants, target_store.now_ms, settings.retention_days
        )
        for tenant in source_store.tenants.all():
            recount.recount(tenant.tenant_id)
    total = f"{copied.tenants} tenants, {copied.keys} keys, {copied.inboxes} inboxes, {copied.events} events"
    click.echo(f"{total}; {copied.written} events were written.")
    if copied.too_large:
        raise click.ClickException("Not copied, too large for DynamoDB: " + ", ".join(copied.too_large))
