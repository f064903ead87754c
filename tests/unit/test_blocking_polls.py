"""Waits that hold a thread, under a WSGI server that is not ours."""

from collections.abc import Iterator

import pytest

from inbox.domain.events import Event, Page, Status
from inbox.services.long_polling import ThreadWaits

NOTHING = Page([], more=False)
SOMETHING = Page([Event("e", None, 1, Status.DELIVERED, 1, 1, b"{}")], more=False)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbox.services.long_polling._PAUSE_SECONDS", 0)


def test_client_that_is_gone_gets_nothing_more_claimed() -> None:
    is_gone = iter([False, True])
    looks: Iterator[Page] = iter([NOTHING, NOTHING])
    assert ThreadWaits().claim_or_wait(20, lambda: next(looks), lambda: next(is_gone)) == NOTHING
    assert next(looks, None) is None


def test_client_that_has_only_ended_its_side_gets_what_is_there() -> None:
    assert ThreadWaits().claim_or_wait(20, lambda: SOMETHING, lambda: True) == SOMETHING
