"""Results of a bench run: bench/results.json, and the table for a terminal and for docs/explanation/performance.md."""

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apsw

from bench.rounds import Row, parse_row
from inbox.settings import Settings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results.json"
PAGE = ROOT / "docs" / "explanation" / "performance.md"

_BEGIN = "<!-- made by `make bench` from bench/results.json -->\n"
_END = "<!-- until here -->\n"


def save(rows: list[Row], names: Sequence[str]) -> None:
    """Writes the results. Rows that were not measured keep their previous results."""
    known = {row.name: row for row in load()[1]} if RESULTS.exists() else {}
    known |= {row.name: row for row in rows}
    document = {"context": _read_context(), "rows": [known[name].as_json() for name in names if name in known]}
    RESULTS.write_text(json.dumps(document, indent=2) + "\n")


def load() -> tuple[dict[str, Any], list[Row]]:
    document = json.loads(RESULTS.read_text())
    return document["context"], [parse_row(each) for each in document["rows"]]


def render_table(rows: list[Row]) -> str:
    cells = [("row", "ours", "reference", "unit", "ratio", "± noise", "goal", ""), *map(_render_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in _NUMERIC_COLUMNS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


_NUMERIC_COLUMNS = (1, 2, 4, 5)


def replace_table(page: str, context: dict[str, Any], rows: list[Row]) -> str:
    """Returns the page with its table replaced by a table of `rows`."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    lines = [
        "| | ours | reference | | ratio | ± noise | goal | |",
        "|---|--:|--:|---|--:|--:|---|---|",
        *(_render_line(row) for row in rows),
    ]
    return before + _BEGIN + "\n".join(["", *lines, "", _render_environment(context), "", ""]) + _END + after


def _render_line(row: Row) -> str:
    name, ours, reference, unit, value, noise, goal, outcome = _render_cells(row)
    return f"| {name} | {ours} | {reference} | {unit}, {row.against} | {value} | {noise} | {goal} | {outcome} |"


def _render_environment(context: dict[str, Any]) -> str:
    parser = "with" if context["gunicorn_h1c"] else "without"
    return (
        f"Measured on {context['cores']} cores with Python {context['python']}, SQLite {context['sqlite']}, Flask "
        f"{context['flask']} and gunicorn {context['gunicorn']} ({parser} its C parser in the reference), "
        f"{context['workers']} workers."
    )


def _render_cells(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        format_number(row.median("ours")),
        format_number(row.median("reference")),
        row.unit,
        format_value(row, row.value),
        format_noise(row),
        format_goal(row),
        row.outcome,
    )


def format_goal(row: Row) -> str:
    units = {"ratio": "", "ours": f" {row.unit}", "more": f" {row.unit} more"}
    return f"{row.goal.bound} {row.goal.figure:g}{units[row.goal.part]}"


def format_value(row: Row, value: float) -> str:
    """Returns a ratio, a figure or a difference as text, depending on the goal."""
    if row.goal.part == "ratio":
        return f"{value:.2f}"
    return f"{format_number(value)} {row.unit}" if row.goal.part == "ours" else f"{value:+.0f} {row.unit}"


def format_noise(row: Row) -> str:
    return format_value(row, row.noise).removeprefix("+")


def format_number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _read_context() -> dict[str, Any]:
    """Returns the cores and versions that the figures depend on, without anything that identifies the machine."""
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "flask": version("flask"),
        "gunicorn": version("gunicorn"),
        "gunicorn_h1c": find_spec("gunicorn_h1c") is not None,
        "workers": Settings().workers,
    }
