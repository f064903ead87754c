"""The `inbox` command: results on stdout, messages on stderr. Exit status 0 success, 2 wrong usage, 1 otherwise."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from inbox import __version__
from inbox.errors import InboxError

# The commands of each module, in the order of `inbox --help`.
_COMMANDS = {
    "serve": ["serve", "quickstart"],
    "store": ["init", "config", "backup", "restore", "copy", "purge", "backlog", "recount"],
    "tenants": ["tenants"],
    "keys": ["keys"],
    "events": ["send", "replay"],
    "poll": ["poll"],
    "inboxes": ["inboxes"],
}
_MODULES = {command: module for module, commands in _COMMANDS.items() for command in commands}


class _Commands(click.Group):
    """Imports a command's module when the command is used: `inbox keys create` does not wait for a web framework."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if name not in _MODULES:
            return None
        command: click.Command = getattr(import_module(f"inbox.cli.{_MODULES[name]}"), name)
        return command

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Runs a command, and prints its error as `error: …`. Always raises SystemExit."""
        try:
            sys.exit(super().main(*args, **options | {"standalone_mode": False}))
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(error.exit_code)
        except click.UsageError as error:
            usage = "" if error.ctx is None else f"\n{error.ctx.get_usage()}\nRun `{error.ctx.command_path} --help`."
            _exit(error.exit_code, error.format_message() + usage)
        except click.Abort:
            _exit(1, "Aborted.")
        except click.ClickException as error:
            _exit(error.exit_code, error.format_message())
        except InboxError as error:
            _exit(1, str(error))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            _exit(1, f"{error.filename}: {reason}." if error.filename else f"{reason}.")


def _exit(status: int, message: str) -> NoReturn:
    click.echo(f"error: {message}", err=True)
    sys.exit(status)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="inbox %(version)s")
def inbox() -> None:
    """Polling Inbox: send events with POST, poll them with GET.

    Commands that use the store read INBOX_STORE and need no running service. `send`, `poll`, `replay` and `inboxes`
    call the service at INBOX_URL with INBOX_API_KEY.
    """


def main() -> None:
    if sys.stderr is None:
        # The parent process closed it. Messages are dropped, and the command runs.
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        # Fails on bytes that are not UTF-8, which Python has replaced by lone surrogates.
        " ".join(sys.argv).encode()
    except UnicodeEncodeError:
        _exit(2, "An argument is not UTF-8.")
    inbox()
