"""inbox purge"""

from contextlib import closing

import click

from inbox.cli.environment import read_environment
from inbox.cli.output import progress
from inbox.services.retention import Retention
from inbox.store.factory import open_existing_store


@click.command()
def purge() -> None:
    """Delete expired events and print the number of rows. A running service does so once a minute."""
    with (
        closing(open_existing_store(read_environment())) as store,
        progress("Deleting expired events", Retention(store.events, store.now_ms).purge()) as steps,
    ):
        deleted = sum(steps)
    click.echo(deleted)
