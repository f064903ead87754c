"""The command `inbox`. Results go to stdout, words for people to stderr; 0 is success, 2 wrong usage, 1 all else."""

import os
import sys
from importlib import import_module
from pathlib import Path

import click

from inbox import __version__
from inbox.errors import InboxError

_COMMANDS = {
    "serve": "serve",
    "quickstart": "serve",
    "init": "init",
    "config": "init",
    "backup": "backup",
    "restore": "backup",
    "copy": "copy",
    "tenants": "tenants",
    "keys": "keys",
    "send": "send",
    "poll": "send",
    "replay": "replay",
    "inboxes": "inboxes",
    "purge": "purge",
    "backlog": "backlog",
    "recount": "recount",
}


class _OnDemand(click.Group):
    """Imports a command when it is used: making a key should not wait for a web framework."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"inbox.cli.{_COMMANDS[name]}"), name)
        return command


@click.group(cls=_OnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="inbox %(version)s")
def inbox() -> None:
    """Polling Inbox: events in by POST, out by poll."""


def main() -> None:
    if sys.stderr is None:
        # Closed by whoever has started it: what is said for people is lost, and nothing else.
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        " ".join(sys.argv).encode()
    except UnicodeEncodeError:
        click.ClickException("An argument is not UTF-8.").show()
        sys.exit(2)
    try:
        inbox()
    except (InboxError, OSError) as error:
        click.ClickException(str(error)).show()
        sys.exit(1)
