"""inbox backup and inbox restore"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from inbox.cli.environment import read_environment
from inbox.cli.output import progress
from inbox.stop_signals import interrupt_on_stop_signals
from inbox.store import factory


def _new_file(_context: click.Context, _argument: click.Parameter, text: str) -> Path:
    if text in ("", "-") or text.endswith("/") or Path(text).is_dir():
        raise click.BadParameter("must be the path of a new file.")
    return Path(text)


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar whose length is known only once the work is under way."""
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
    interrupt_on_stop_signals()
    with _progress("Copying the database") as show:
        factory.back_up(settings, file, show)
    click.echo(file)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Replace the embedded store by the backup FILE, and keep the previous database beside it."""
    settings = read_environment()
    interrupt_on_stop_signals()
    with _progress("Copying the backup") as show:
        path, kept = factory.restore(settings, file, show)
    click.echo(f"{path} is restored.", err=True)
    click.echo(f"The previous database is kept as {kept}." if kept else "There was no database before.", err=True)
