"""How far a command has come, for whoever looks on at a terminal."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar


def progress(label: str, steps: Iterable[int] | None = None, *, length: int | None = None) -> "ProgressBar[int]":
    return click.progressbar(steps, length, label=label, file=sys.stderr, hidden=not sys.stderr.isatty())
