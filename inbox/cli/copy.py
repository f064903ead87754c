"""inbox copy"""

from contextlib import closing
from pathlib import Path

import click

from inbox.cli.environment import settings_in_force
from inbox.cli.progress import progress
from inbox.services.stats import RecountService
from inbox.services.store_copy import StoreCopy
from inbox.settings import SQLITE
from inbox.store.factory import open_source, open_target


def _file(_context: click.Context, _option: click.Parameter, url: str) -> Path:
    path = Path(url.removeprefix(SQLITE))
    if not url.startswith(SQLITE) or not path.is_file():
        raise click.BadParameter(f"it takes {SQLITE}PATH, the path of a file that is there.")
    return path


@click.command()
@click.option("--from", "source", metavar="sqlite:///PATH", required=True, callback=_file, help="An embedded store.")
@click.option(
    "--to", "target", type=click.Choice(["dynamodb://"]), required=True, help="`inbox init` makes its tables."
)
def copy(source: Path, target: str) -> None:
    """Copy tenants, keys, inboxes and events into another store. Safe to repeat: nothing is there twice."""
    settings = settings_in_force(store=target)
    with (
        closing(open_source(source, settings)) as source_store,
        closing(open_target(settings)) as target_store,
    ):
        target_store.check()
        move = StoreCopy(source_store, target_store, target_store.now_ms)
        with progress("Copying events", length=move.count()) as bar:
            copied = move.copy(bar.update)
        # What was copied has not happened there, but it is there.
        recount = RecountService(
            target_store.counters, target_store.tenants, target_store.now_ms, settings.retention_days
        )
        for tenant in source_store.tenants.all():
            recount.recount(tenant.tenant_id)
    total = f"{copied.tenants} tenants, {copied.keys} keys, {copied.inboxes} inboxes, {copied.events} events"
    click.echo(f"{total}; {copied.written} events were written.")
    if copied.too_large:
        raise click.ClickException("Too large for DynamoDB, and not copied: " + ", ".join(copied.too_large))
