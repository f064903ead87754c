"""The figures of the torture tests, as a table at the end of a test run."""

from collections.abc import Iterable
from typing import Any

DELIVERIES = "deliveries"
"""The test property with the name of a test and the figures of its delivery report."""

_TOLD_FIRST = ("accepted", "delivered once", "lost", "duplicated", "foreign", "out of order")


def counts(test: str, properties: Iterable[tuple[str, Any]]) -> list[str]:
    """Returns a line with the other figures of a test, if it has any."""
    told = ", ".join(f"{name} {value}" for name, value in properties if name != DELIVERIES)
    return [f"{short(test)}: {told}"] if told else []


def short(test: str) -> str:
    return test.removeprefix("tests/torture/test_").replace(".py::test_", ": ").replace("_", " ")


def table(properties: Iterable[tuple[str, Any]]) -> list[str]:
    reports: dict[str, dict[str, int]] = dict(sorted(value for name, value in properties if name == DELIVERIES))
    if not reports:
        return []
    names = [*_TOLD_FIRST, *(name for name in next(iter(reports.values())) if name not in _TOLD_FIRST)]
    total = {name: sum(figures[name] for figures in reports.values()) for name in names}
    width = max(map(len, reports))
    lines = ["", f"{'events':{width}}  " + "  ".join(names)]
    for title, figures in [*reports.items(), ("in all", total)]:
        lines.append(f"{title:{width}}  " + "  ".join(f"{figures[name]:{len(name)},}" for name in names))
    return lines
