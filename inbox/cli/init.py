"""Commands that set the service up: init, config."""

from contextlib import closing

import click

from inbox.cli.environment import settings_in_force
from inbox.store.factory import open_store


@click.command()
def init() -> None:
    """Make the database or bring it up to date, or make the tables. Safe to repeat."""
    settings = settings_in_force()
    with closing(open_store(settings)) as store:
        store.init()
    click.echo(f"{settings.store} is ready.", err=True)


@click.command()
def config() -> None:
    """Show every setting in force, secrets hidden."""
    for name, value in settings_in_force().as_variables().items():
        click.echo(f"{name}={value}")
