"""Positions of new events in DynamoDB's index."""

from inbox.store.dynamodb.put_events import EventOrder

HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000


def test_timestamps_do_not_decrease_after_a_small_step_of_the_clock() -> None:
    order = EventOrder()
    assert order.next(NOW_MS, 1)[0] == NOW_MS
    assert order.next(NOW_MS - HOUR_MS + 1, 1)[0] == NOW_MS


def test_clock_that_was_far_ahead_does_not_delay_later_events() -> None:
    order = EventOrder()
    order.next(NOW_MS + 2 * HOUR_MS, 1)
    timestamp_ms, (first,) = order.next(NOW_MS, 1)
    _, (second,) = order.next(NOW_MS, 1)
    assert timestamp_ms == NOW_MS
    assert first < second
