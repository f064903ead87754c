"""What the long runs counted, as a table at the end of a test run."""

from collections.abc import Iterable
from typing import Any

ACCOUNT = "account"
"""The property of a test that carries its name and the figures of its account."""

_TOLD_FIRST = ("accepted", "delivered once", "lost", "duplicated", "foreign", "out of order")


def counts(test: str, properties: Iterable[tuple[str, Any]]) -> list[str]:
    """What else a test has counted, as one line if anything."""
    told = ", ".join(f"{name} {value}" for name, value in properties if name != ACCOUNT)
    return [f"{short(test)}: {told}"] if told else []


def short(test: str) -> str:
    """The name of a test as a person would write it."""
    return test.removeprefix("tests/torture/test_").replace(".py::test_", ": ").replace("_", " ")


def table(properties: Iterable[tuple[str, Any]]) -> list[str]:
    accounts: dict[str, dict[str, int]] = dict(sorted(value for name, value in properties if name == ACCOUNT))
    if not accounts:
        return []
    names = [*_TOLD_FIRST, *(name for name in next(iter(accounts.values())) if name not in _TOLD_FIRST)]
    total = {name: sum(figures[name] for figures in accounts.values()) for name in names}
    width = max(map(len, accounts))
    lines = ["", f"{'what became of the events':{width}}  " + "  ".join(names)]
    for title, figures in [*accounts.items(), ("in all", total)]:
        lines.append(f"{title:{width}}  " + "  ".join(f"{figures[name]:{len(name)},}" for name in names))
    return lines
