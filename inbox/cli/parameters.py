"""Types of options and arguments. A value that a type refuses is wrong usage, exit status 2."""

import re
from collections.abc import Callable

import click

from inbox.domain.inboxes import is_inbox_name
from inbox.domain.tenants import MAX_NAME, is_email, is_name, is_tenant_id
from inbox.domain.timestamps import parse_timestamp

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DAY_SECONDS = 86400


class WholeNumber(click.IntRange):
    """click's own message, "is not a valid integer range", does not name the range."""

    def convert(self, value: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"must be a whole number from {self.min} to {self.max}.", param, ctx)


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


class _Text(click.ParamType[str]):
    name = "text"

    def __init__(self, is_valid: Callable[[str], bool], rule: str) -> None:
        self._is_valid = is_valid
        self._rule = rule

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not self._is_valid(value):
            self.fail(f"must {self._rule}.", param, ctx)
        return value


TENANT_ID = _Text(is_tenant_id, "have 1 to 63 letters, digits, `.`, `_` and `-`, the first a letter or digit")
ORGANIZATION_NAME = _Text(lambda text: text != "" and is_name(text), f"have 1 to {MAX_NAME} printable characters")
KEY_NAME = _Text(is_name, f"have up to {MAX_NAME} printable characters")
EMAIL = _Text(is_email, "be an email address")
# Checked before it becomes part of a URL.
INBOX_NAME = _Text(is_inbox_name, "have 1 to 63 of a-z, 0-9 and hyphens, the first a letter or digit")


def parse_time(text: str) -> int:
    """Returns epoch milliseconds. Accepts them as text, too, or ISO 8601."""
    timestamp_ms = parse_timestamp(text)
    if timestamp_ms is None:
        raise click.BadParameter(f"{text!r} is neither ISO 8601, such as 2026-11-16T01:56, nor epoch milliseconds.")
    return timestamp_ms
