"""The command `inbox`. Results go to stdout, words for people to stderr; 0 is success, 2 wrong usage, 1 all else."""

import sys

import click

from inbox.cli import client, keys, serving, tenants
from inbox.errors import InboxError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def inbox() -> None:
    """Polling Inbox: events in by POST, out by poll."""


for command in (
    serving.serve,
    serving.quickstart,
    serving.init,
    serving.config,
    tenants.tenants,
    keys.keys,
    client.send,
    client.poll,
):
    inbox.add_command(command)


def main() -> None:
    try:
        inbox()
    except InboxError as error:
        click.echo(f"inbox: {error}", err=True)
        sys.exit(1)
