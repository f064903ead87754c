"""The power goes at any moment: what was put is there, and what was handed out is not handed out again."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from inbox.events import DEFAULT_INBOX
from inbox.store.port import EventStore
from inbox.store.sqlite import SQLiteStore
from tests.contract.samples import LATER, NOW, ids, numbered, page_of
from tests.torture.power_cut import PLAIN_DISK, forgetful_disk


def test_a_power_cut_takes_nothing_back(tmp_path: Path, torture: bool) -> None:
    cuts = 200 if torture else 10
    stop = threading.Event()
    put: list[str] = []
    taken: list[str] = []

    def produce(events: EventStore) -> None:
        while not stop.is_set():
            new = numbered(random.choice((1, 1, 5)))
            events.put("acme", new, NOW, LATER)
            put.extend(ids(new))

    def consume(events: EventStore) -> None:
        while not stop.is_set():
            taken.extend(ids(events.claim("acme", DEFAULT_INBOX, page_of(7), NOW).events))

    with (
        forgetful_disk() as disk,
        closing(SQLiteStore(tmp_path / "inbox.db", 10)) as store,
        ThreadPoolExecutor(5) as pool,
    ):
        working = [pool.submit(act, store.events) for act in (produce, produce, produce, consume, consume)]
        try:
            for number in range(cuts):
                time.sleep(random.uniform(0.02, 0.3))
                # In this order: what is answered while the files are copied proves nothing.
                was_put, was_taken = [*put], [*taken]
                folder = tmp_path / f"cut-{number}"
                folder.mkdir()
                disk.cut(folder)
                _check(folder, was_put, was_taken)
        finally:
            stop.set()
        for each in working:
            each.result()
    assert len(put) > cuts
    assert len(taken) > cuts


def _check(folder: Path, was_put: list[str], was_taken: list[str]) -> None:
    # Named, since the disk that forgets is in force.
    with closing(apsw.Connection(str(folder / "inbox.db"), vfs=PLAIN_DISK)) as connection:
        assert connection.pragma("integrity_check") == "ok"
        rows: Any = connection.execute("SELECT event_id, status FROM events").fetchall()
    status = dict(rows)
    assert [each for each in was_put if each not in status] == []
    assert [each for each in was_taken if status[each] != "delivered"] == []
