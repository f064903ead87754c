"""What commands print: tables, JSON lines and progress bars."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from inbox.domain import exact_json

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            click.echo(exact_json.dump({name: row[name] for name in columns}))
        return
    cells = [list(columns), *[[_text(row[name]) for name in columns] for row in rows]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(columns))]
    for line in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _text(value: Any) -> str:
    if value in (None, ""):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ",".join(value) if isinstance(value, list) else str(value)
    # Tenants choose names, which must not contain control sequences for the operator's terminal.
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def progress(label: str, steps: Iterable[int] | None = None, *, length: int | None = None) -> "ProgressBar[int]":
    """Returns a progress bar on stderr, which is hidden unless stderr is a terminal."""
    return click.progressbar(steps, length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty())
