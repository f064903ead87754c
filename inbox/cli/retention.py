"""inbox purge"""

import sys
from contextlib import closing

import click

from inbox.cli.environment import settings_in_force
from inbox.retention import Retention
from inbox.store.opening import open_store


@click.command()
def purge() -> None:
    """Delete what is past its retention, and print how many rows it was. A running service does so by itself."""
    with (
        closing(open_store(settings_in_force())) as store,
        click.progressbar(
            Retention(store.events, store.now_ms).purge(),
            label="Deleting expired events",
            file=sys.stderr,
            hidden=not sys.stderr.isatty(),
        ) as steps,
    ):
        deleted = sum(steps)
    click.echo(deleted)
