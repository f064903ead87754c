"""inbox copy"""

import sys
from contextlib import closing

import click

from inbox.cli.environment import settings_in_force
from inbox.clock import now_ms
from inbox.moving import Move
from inbox.store.opening import open_source, open_target


@click.command()
@click.option("--from", "source_url", metavar="URL", required=True, help="sqlite:///PATH of an embedded store.")
@click.option("--to", "target_url", metavar="URL", required=True, help="dynamodb://; `inbox init` makes its tables.")
def copy(source_url: str, target_url: str) -> None:
    """Copy tenants, keys and events into another store. Safe to repeat: nothing is there twice."""
    source_settings, target_settings = settings_in_force(store=source_url), settings_in_force(store=target_url)
    with closing(open_source(source_settings)) as source, closing(open_target(target_settings)) as target:
        target.check()
        move = Move(source, target, now_ms)
        with click.progressbar(
            length=move.count(), label="Copying events", file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as bar:
            copied = move.copy(bar.update)
    total = f"{copied.tenants} tenants, {copied.keys} keys, {copied.events} events"
    click.echo(f"{total}; {copied.written} events were written.")
    if copied.too_large:
        raise click.ClickException("Too large for DynamoDB, and not copied: " + ", ".join(copied.too_large))
