"""inbox config"""

import click

from inbox.cli.environment import read_environment


@click.command()
def config() -> None:
    """Print every setting and its value. Secrets are hidden."""
    for name, value in read_environment().as_variables().items():
        click.echo(f"{name}={value}")
