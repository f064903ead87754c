"""inbox init and inbox config"""

from contextlib import closing

import click

from inbox.cli.environment import read_environment
from inbox.store.factory import open_store


@click.command()
def init() -> None:
    """Create the store, or migrate it to this release. Safe to repeat.

    With SQLite this is the database file, with DynamoDB the tables.
    """
    settings = read_environment()
    with closing(open_store(settings)) as store:
        store.init()
    click.echo(f"{settings.store} is ready.", err=True)


@click.command()
def config() -> None:
    """Print every setting and its value. Secrets are hidden."""
    for name, value in read_environment().as_variables().items():
        click.echo(f"{name}={value}")
