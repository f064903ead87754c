"""Waiting polls that block a thread, under other WSGI servers."""

from collections.abc import Iterator

import pytest

from inbox.domain.events import Event, Page, Status
from inbox.services.blocking_polls import claim_or_wait

NO_EVENTS = Page([], more=False)
ONE_EVENT = Page([Event("e", None, 1, Status.DELIVERED, 1, 1, b"{}")], more=False)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbox.services.blocking_polls._PAUSE_SECONDS", 0)


def test_nothing_is_claimed_after_the_client_has_gone() -> None:
    is_gone = iter([False, True])
    pages: Iterator[Page] = iter([NO_EVENTS, NO_EVENTS])
    assert claim_or_wait(20, lambda: next(pages), lambda: next(is_gone), lambda _change: None) == NO_EVENTS
    assert next(pages, None) is None


def test_available_events_are_returned_without_checking_the_client() -> None:
    assert claim_or_wait(20, lambda: ONE_EVENT, lambda: True, lambda _change: None) == ONE_EVENT
