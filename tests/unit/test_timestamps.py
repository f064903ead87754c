"""Timestamps as text."""

import pytest

from inbox.domain.timestamps import format_timestamp, parse_timestamp

LAST_MS = 9_999_999_999_999


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("0", 0),
        ("1732140249123", 1732140249123),
        ("20241120", 20241120),
        ("2024-11-20T22:04:09.123Z", 1732140249123),
        ("2024-11-20T22:04:09.123", 1732140249123),
        ("2024-11-20 22:04:09.123999", 1732140249123),
        ("2024-11-20T23:04:09.123+01:00", 1732140249123),
        ("2024-11-20", 1732060800000),
        ("0001-01-01T00:00:00+01:00", 0),
        ("9999-12-31T23:59:59-01:00", LAST_MS),
        ("999999999999999", LAST_MS),
    ],
)
def test_parse_accepts_epoch_milliseconds_and_iso_8601(text: str, expected_ms: int) -> None:
    assert parse_timestamp(text) == expected_ms


@pytest.mark.parametrize(
    "text", ["", "now", "-1", "1.5", "1e3", "٣", "2024-13-01", "24:00", "1" * 16, "2024-11-20T22:04:09 01:00"]
)
def test_parse_returns_none_for_other_text(text: str) -> None:
    assert parse_timestamp(text) is None


@pytest.mark.parametrize("timestamp_ms", [0, 5, 50, 1732140249123, 1732140249000, 1732140249007, LAST_MS])
def test_parse_reverses_format(timestamp_ms: int) -> None:
    assert parse_timestamp(format_timestamp(timestamp_ms)) == timestamp_ms


def test_format_has_milliseconds_and_utc() -> None:
    assert format_timestamp(1732140249005) == "2024-11-20T22:04:09.005Z"
