"""Types of options and arguments."""

import re

import click

from inbox.domain.inboxes import is_inbox_name
from inbox.domain.timestamps import parse_timestamp

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DAY_SECONDS = 86400


class Duration(click.ParamType[int]):
    """A duration such as 90d, 24h, 15m or 30s, in seconds."""

    name = "duration"

    def __init__(self, min_seconds: int = 1, max_seconds: int = 36_500 * _DAY_SECONDS) -> None:
        self._min_seconds = min_seconds
        self._max_seconds = max_seconds

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"([0-9]{1,9})([smhd])", str(value), re.ASCII)
        seconds = int(match[1]) * _SECONDS[match[2]] if match else -1
        if not self._min_seconds <= seconds <= self._max_seconds:
            max_days = self._max_seconds // _DAY_SECONDS
            self.fail(f"{value!r} is not a duration from {self._min_seconds}s to {max_days}d, such as 24h.", param, ctx)
        return seconds


def timestamp_ms(text: str) -> int:
    """Parses epoch milliseconds or ISO 8601."""
    parsed_ms = parse_timestamp(text)
    if parsed_ms is None:
        raise click.BadParameter(f"{text!r} is neither ISO 8601, such as 2026-11-16T01:56, nor epoch milliseconds.")
    return parsed_ms


def inbox_name(text: str) -> str:
    """Checks the name of an inbox before it becomes part of a URL."""
    if not is_inbox_name(text):
        raise click.BadParameter(f"{text!r} is not 1 to 63 of a-z, 0-9 and hyphens, starting with a letter or digit.")
    return text
