"""Power cuts at any moment: accepted events are stored, and delivered events are not delivered again."""

import random
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from inbox.domain.events import DEFAULT_INBOX
from inbox.store.interface import EventStore
from inbox.store.sqlite import SQLiteStore
from tests.contract.samples import LATER_S, NOW, ids, numbered, page_of
from tests.service import until
from tests.torture.power_cut import simulate_disk
from tests.torture.stored_events import read_events

CUTS = 10


def test_power_cut_reverts_nothing_that_was_confirmed(tmp_path: Path, torture: bool) -> None:
    # Several stores, because the check after each cut takes longer as its store grows.
    for number in range(20 if torture else 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        _cut_repeatedly(folder)
        shutil.rmtree(folder)


def _cut_repeatedly(folder: Path) -> None:
    stop = threading.Event()
    put: list[str] = []
    claimed: list[str] = []

    def produce(events: EventStore) -> None:
        while not stop.is_set():
            new = numbered(random.choice((1, 1, 5)))
            events.put("acme", new, NOW, LATER_S)
            put.extend(ids(new))

    def consume(events: EventStore) -> None:
        while not stop.is_set():
            claimed.extend(ids(events.claim("acme", DEFAULT_INBOX, page_of(7), NOW).events))

    with (
        simulate_disk() as disk,
        closing(SQLiteStore(folder / "inbox.db", 10)) as store,
        ThreadPoolExecutor(5) as pool,
    ):
        working = [pool.submit(work, store.events) for work in (produce, produce, produce, consume, consume)]
        try:
            for number in range(CUTS):
                time.sleep(random.uniform(0.02, 0.3))
                # Read before the cut, because later writes need not be in the copied files.
                was_put, was_claimed = [*put], [*claimed]
                after = folder / f"cut-{number}"
                after.mkdir()
                disk.cut(after)
                _check(after, was_put, was_claimed)
            until(lambda: min(len(put), len(claimed)) > CUTS)
        finally:
            stop.set()
        for each in working:
            each.result()


def _check(folder: Path, was_put: list[str], was_claimed: list[str]) -> None:
    status = {event.event_id: event.status for event in read_events(folder / "inbox.db")}
    assert [each for each in was_put if each not in status] == []
    assert [each for each in was_claimed if status[each] != "delivered"] == []
