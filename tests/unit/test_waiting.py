"""Who waits, how many, and what ends it."""

import threading
from collections.abc import Iterator

import pytest

from inbox.events import Event, Page, Status
from inbox.waiting import Waits

NOTHING = Page([], more=False)
SOMETHING = Page([Event("e", None, 1, Status.DELIVERED, 1, 1, b"{}")], more=False)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inbox.waiting._PAUSE_SECONDS", 0)


def here() -> bool:
    return False


def test_a_client_that_hung_up_gets_nothing_more_claimed() -> None:
    hung_up = iter([False, True])
    looks: Iterator[Page] = iter([NOTHING, NOTHING])
    assert Waits(1).until_events(lambda: next(looks), 20, lambda: next(hung_up)) == NOTHING
    assert next(looks, None) is None


def test_a_client_that_has_only_ended_its_side_gets_what_is_there() -> None:
    assert Waits(1).until_events(lambda: SOMETHING, 20, lambda: True) == SOMETHING


def test_only_so_many_wait_at_a_time_and_the_others_are_answered_at_once() -> None:
    waits, waiting, come = Waits(1), threading.Event(), threading.Event()

    def look() -> Page:
        # The second look: by then it has its place.
        if looked:
            waiting.set()
        looked.append(1)
        return SOMETHING if come.is_set() else NOTHING

    looked: list[int] = []
    found: list[Page] = []
    first = threading.Thread(target=lambda: found.append(waits.until_events(look, 20, here)))
    first.start()
    assert waiting.wait(10)
    looks = iter([NOTHING])
    assert waits.until_events(lambda: next(looks), 20, here) == NOTHING
    assert waits.until_events(lambda: SOMETHING, 20, here) == SOMETHING
    come.set()
    first.join()
    assert found == [SOMETHING]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_place_is_free_again_whatever_ended_the_wait(failure: type[BaseException]) -> None:
    waits = Waits(1)
    for _ in range(2):
        looks = iter([NOTHING])

        def look(looks: Iterator[Page] = looks) -> Page:
            for page in looks:
                return page
            raise failure

        with pytest.raises(failure):
            waits.until_events(look, 20, here)


def test_without_a_place_nobody_waits() -> None:
    looks = iter([NOTHING])
    assert Waits(0).until_events(lambda: next(looks), 20, here) == NOTHING
