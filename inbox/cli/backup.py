"""inbox backup and inbox restore"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from inbox.cli.environment import read_environment
from inbox.cli.output import progress
from inbox.stop_signals import stop_as_at_ctrl_c
from inbox.store import factory


def _new_file(_context: click.Context, _argument: click.Parameter, text: str) -> Path:
    if text in ("", "-") or text.endswith("/") or Path(text).is_dir():
        raise click.BadParameter("it takes the path of a new file.")
    return Path(text)


def _file_that_is_there(_context: click.Context, _argument: click.Parameter, text: str) -> Path:
    if not Path(text).is_file():
        raise click.BadParameter("it takes the path of a file that is there.")
    return Path(text)


@contextmanager
def _shown(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that learns from what it is shown how long it has to be."""
    with progress(label, length=0) as bar:

        def show(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield show


@click.command()
@click.argument("file", callback=_new_file)
def backup(file: Path) -> None:
    """Copy the embedded store into a new FILE, while the service runs, and print its path."""
    settings = read_environment()
    stop_as_at_ctrl_c()
    with _shown("Copying the database") as show:
        factory.back_up(settings, file, show)
    click.echo(file)


@click.command()
@click.argument("file", callback=_file_that_is_there)
def restore(file: Path) -> None:
    """Put the backup FILE in the place of the embedded store. What is there is kept beside it."""
    settings = read_environment()
    stop_as_at_ctrl_c()
    with _shown("Copying the backup") as show:
        path, kept = factory.restore(settings, file, show)
    click.echo(f"{path} is restored.", err=True)
    click.echo(f"What was there is kept as {kept}." if kept else "Nothing was there before.", err=True)
