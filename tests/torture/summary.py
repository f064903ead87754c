"""The figures of the torture tests, as lines at the end of a test run."""

from collections.abc import Iterable
from typing import Any

DELIVERIES = "deliveries"
"""The test property with the figures of a delivery report."""

_FIRST_COLUMNS = ("accepted", "delivered once", "lost", "duplicated", "foreign", "out of order")


def format_figures(tests: Iterable[tuple[str, list[tuple[str, Any]]]]) -> list[str]:
    """Returns a table of the delivery reports, and a line for each test with other properties."""
    reports: dict[str, dict[str, int]] = {}
    lines = []
    for test_id, recorded in tests:
        title = test_id.removeprefix("tests/torture/test_").replace(".py::test_", ": ").replace("_", " ")
        properties = dict(recorded)
        if DELIVERIES in properties:
            reports[title] = properties.pop(DELIVERIES)
        if properties:
            lines.append(f"{title}: " + ", ".join(f"{name} {value}" for name, value in properties.items()))
    return [*_format_table(reports), *lines] if reports else lines


def _format_table(reports: dict[str, dict[str, int]]) -> list[str]:
    names = [*_FIRST_COLUMNS, *(name for name in next(iter(reports.values())) if name not in _FIRST_COLUMNS)]
    total = {name: sum(figures[name] for figures in reports.values()) for name in names}
    width = max(map(len, reports))
    lines = ["", f"{'events':{width}}  " + "  ".join(names)]
    for title, figures in [*sorted(reports.items()), ("total", total)]:
        lines.append(f"{title:{width}}  " + "  ".join(f"{figures[name]:{len(name)},}" for name in names))
    return lines
