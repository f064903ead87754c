"""inbox purge"""

from contextlib import closing

import click

from inbox.cli.environment import settings_in_force
from inbox.cli.progress import progress
from inbox.services.retention import Retention
from inbox.store.factory import open_or_create_store


@click.command()
def purge() -> None:
    """Delete what is past its retention, and print how many rows it was. A running service does so by itself."""
    with (
        closing(open_or_create_store(settings_in_force())) as store,
        progress("Deleting expired events", Retention(store.events, store.now_ms).purge()) as steps,
    ):
        deleted = sum(steps)
    click.echo(deleted)
