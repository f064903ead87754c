"""Types of options and arguments. A value that a type refuses is wrong usage, exit status 2."""

import re
from collections.abc import Callable

import click

from inbox.domain.inboxes import INBOX_NAME_RULE, is_inbox_name
from inbox.domain.tenants import MAX_NAME, TENANT_ID_RULE, is_email, is_name, is_tenant_id
from inbox.domain.timestamps import parse_timestamp

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MAX_DURATION_SECONDS = 36_500 * 86_400


class WholeNumber(click.IntRange):
    """An integer in a range. click's own message, "is not a valid integer range", does not name the range."""

    def convert(self, value: int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"must be a whole number from {self.min} to {self.max}.", param, ctx)


def duration_between(min_seconds: int, max_seconds: int) -> Callable[[str], int]:
    """Returns a function that parses a duration such as 90d, 24h, 15m or 30s to seconds."""

    # click shows the name of this function in the help.
    def duration(text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,9})([smhd])", text, re.ASCII)
        seconds = int(match[1]) * _SECONDS[match[2]] if match else -1
        if not min_seconds <= seconds <= max_seconds:
            max_days = max_seconds // _SECONDS["d"]
            raise click.BadParameter(f"{text!r} is not a duration from {min_seconds}s to {max_days}d, such as 24h.")
        return seconds

    return duration


def _text_with(is_valid: Callable[[str], bool], rule: str) -> Callable[[str], str]:
    def text(value: str) -> str:
        if not is_valid(value):
            raise click.BadParameter(f"must {rule}.")
        return value

    return text


TENANT_ID = _text_with(is_tenant_id, f"be {TENANT_ID_RULE}")
ORGANIZATION_NAME = _text_with(lambda text: text != "" and is_name(text), f"have 1 to {MAX_NAME} printable characters")
KEY_NAME = _text_with(is_name, f"have up to {MAX_NAME} printable characters")
EMAIL = _text_with(is_email, "be an email address")
# Checked before it becomes part of a URL.
INBOX_NAME = _text_with(is_inbox_name, f"be {INBOX_NAME_RULE}")


def parse_time(text: str) -> int:
    """Returns epoch milliseconds. `text` is ISO 8601 or epoch milliseconds."""
    timestamp_ms = parse_timestamp(text)
    if timestamp_ms is None:
        raise click.BadParameter(f"{text!r} is neither ISO 8601, such as 2026-11-16T01:56, nor epoch milliseconds.")
    return timestamp_ms
