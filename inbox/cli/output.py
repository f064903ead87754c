"""How lists are printed: columns for people, or one JSON object a line for programs."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from inbox.domain import exact_json

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            click.echo(exact_json.dump({name: row[name] for name in columns}))
        return
    cells = [
        list(columns),
        *[["-" if row[name] in (None, "") else _text(row[name]) for name in columns] for row in rows],
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(columns))]
    for line in cells:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _text(value: Any) -> str:
    text = ",".join(value) if isinstance(value, list) else str(value)
    # A name may hold anything, and must not steer the terminal.
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
