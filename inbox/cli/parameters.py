"""Times as the commands take and print them."""

import re

import click

from inbox.domain.timestamps import parse_timestamp

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Duration(click.ParamType[int]):
    """90d, 24h, 15m or 30s, in seconds."""

    name = "duration"

    def __init__(self, least: int = 1, most: int = 100 * 365 * 86400) -> None:
        self._least = least
        self._most = most

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"([0-9]{1,9})([smhd])", str(value), re.ASCII)
        seconds = int(match[1]) * _SECONDS[match[2]] if match else -1
        if not self._least <= seconds <= self._most:
            self.fail(
                f"{value!r} is not a duration such as 90d, 24h, 15m or 30s, of {self._most // 86400} days at most.",
                param,
                ctx,
            )
        return seconds


class Moment(click.ParamType[int]):
    """Epoch milliseconds or ISO 8601, in epoch milliseconds."""

    name = "time"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        moment = parse_timestamp(str(value))
        if moment is None:
            self.fail(f"{value!r} is neither ISO 8601, such as 2026-11-16T01:56, nor epoch milliseconds.", param, ctx)
        return moment
