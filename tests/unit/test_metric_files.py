"""The files in which processes count together."""

import errno
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import values
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.values import MutexValue

from inbox import metric_files
from inbox.errors import SettingsError
from inbox.metric_files import MetricFiles
from inbox.metrics import Metrics
from inbox.server import _Server
from inbox.settings import Settings
from inbox.shared_numbers import NumberFile, values_in
from tests.exposition import Exposition


@pytest.fixture(autouse=True)
def numbers_in_memory_afterwards() -> Iterator[None]:
    yield
    values.ValueClass = MutexValue


@pytest.fixture
def files(tmp_path: Path) -> MetricFiles:
    return MetricFiles(tmp_path)


def count_as(process: int, files: MetricFiles, monkeypatch: pytest.MonkeyPatch, answers: int, waiting: int = 0) -> None:
    """What a process of that number leaves behind."""
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: process)
        metrics = Metrics("sqlite", files)
    for number in range(answers):
        metrics.answered("/events", "POST", 201, number / 100, may_wait=False)
    for _ in range(waiting):
        metrics.poll_waits().__enter__()


def shown(files: MetricFiles) -> Exposition:
    return Exposition(Metrics("sqlite", files).exposition().decode())


def answers(files: MetricFiles) -> tuple[float, float, float]:
    found = shown(files)
    return (
        found.total("inbox_requests_total"),
        found.total("inbox_request_duration_seconds_count"),
        round(found.total("inbox_request_duration_seconds_sum"), 6),
    )


def test_processes_are_added_up(files: MetricFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    count_as(1, files, monkeypatch, answers=3, waiting=2)
    count_as(2, files, monkeypatch, answers=4, waiting=1)
    assert answers(files) == (7, 7, 0.09)
    assert shown(files).value("inbox_waiting_polls") == 3
    bucket = {"route": "/events", "method": "POST", "le": "0.01"}
    assert shown(files).value("inbox_request_duration_seconds_bucket", **bucket) == 4


def test_files_that_somebody_took_away_end_nothing(files: MetricFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Metrics("sqlite", files)
    shutil.rmtree(files.folder)
    assert b"inbox_build_info" in before.exposition()
    shutil.rmtree(files.folder)
    count_as(1, files, monkeypatch, answers=3)
    assert answers(files)[0] == 3


def test_what_cannot_be_put_together_does_not_end_the_service(
    files: MetricFiles, caplog: pytest.LogCaptureFixture
) -> None:
    server = _Server(Settings(), files, lambda: None)
    (files.folder / "counter_1.db").write_bytes(b"")
    arbiter = SimpleNamespace(WORKERS={}, log=logging.getLogger("arbiter"))
    server.cfg.child_exit(arbiter, None)
    assert "left where it is (error)" in caplog.text


def test_what_ended_processes_counted_stays_and_where_they_waited_does_not(
    files: MetricFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_as(1, files, monkeypatch, answers=3, waiting=2)
    count_as(2, files, monkeypatch, answers=4, waiting=1)
    files.keep_of_ended({2})
    assert answers(files) == (7, 7, 0.09)
    assert shown(files).value("inbox_waiting_polls") == 1


def test_files_do_not_pile_up(files: MetricFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = set()
    for process in range(1, 30):
        count_as(process, files, monkeypatch, answers=1)
        files.keep_of_ended({})
        sizes.add(sum(file.stat().st_size for file in files.folder.iterdir()))
    assert {file.name for file in files.folder.iterdir()} == {"counter_ended.db", "histogram_ended.db", "lock"}
    assert len(sizes) == 1
    assert answers(files) == (29, 29, 0)


def test_nothing_is_put_together_while_somebody_reads(files: MetricFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    count_as(1, files, monkeypatch, answers=3)
    with files.reading(), files.reading():
        files.keep_of_ended({})
        assert (files.folder / "counter_1.db").exists()
    files.keep_of_ended({})
    assert not (files.folder / "counter_1.db").exists()
    assert answers(files)[0] == 3


def test_who_adds_up_counts_as_somebody_who_reads(files: MetricFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    add_up: Any = MultiProcessCollector.collect

    def meanwhile(collector: MultiProcessCollector) -> Any:
        files.keep_of_ended({})
        return add_up(collector)

    count_as(1, files, monkeypatch, answers=3)
    monkeypatch.setattr(MultiProcessCollector, "collect", meanwhile)
    assert answers(files)[0] == 3
    assert (files.folder / "counter_1.db").exists()


def test_a_process_that_gets_the_number_of_an_earlier_one_goes_on_counting(
    files: MetricFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_as(1, files, monkeypatch, answers=3)
    count_as(1, files, monkeypatch, answers=4)
    assert answers(files)[0] == 7


def test_a_service_that_was_ended_by_force_leaves_nothing_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_files, "SHARED_MEMORY", tmp_path)
    deserted = tmp_path / "inbox-metrics-deserted"
    deserted.mkdir()
    (deserted / "counter_1.db").touch()
    (tmp_path / "inbox-metrics-link").symlink_to(tmp_path)
    with metric_files.made() as first, metric_files.made() as second:
        assert not deserted.exists()
        assert first.folder.parent == second.folder.parent == tmp_path
        assert first.folder.exists()
        assert first.folder.stat().st_mode & 0o777 == 0o700
    assert {file.name for file in tmp_path.iterdir()} == {"inbox-metrics-link"}


def test_a_forked_process_does_not_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric_files, "SHARED_MEMORY", tmp_path)
    made = metric_files.made()
    files = made.__enter__()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        made.__exit__(None, None, None)
    assert files.folder.exists()


def test_without_shared_memory_it_is_with_other_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_files, "SHARED_MEMORY", tmp_path / "none")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with metric_files.made() as files:
        assert files.folder.parent == tmp_path


def test_no_room_for_a_folder_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(SettingsError, match=r"has no room for metrics \(No space left on device\)$"):
        metric_files.made().__enter__()


def test_a_number_without_room_counts_for_nobody_and_fails_nobody(
    files: MetricFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    metrics = Metrics("sqlite", files)
    metrics.answered("/events", "POST", 201, 0.1, may_wait=False)
    monkeypatch.setattr(os, "pwrite", full)
    metrics.answered("/events", "POST", 201, 0.1, may_wait=False)
    metrics.answered("/events", "GET", 200, 0.1, may_wait=False)
    assert Exposition(metrics.exposition().decode()).total("inbox_requests_total") == 2


def test_a_number_that_was_written_in_part_counts_for_nobody(
    files: MetricFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics("sqlite", files)
    write = os.pwrite
    # As at the end of a page, where there is no further one.
    monkeypatch.setattr(os, "pwrite", lambda file, data, place: write(file, data[:20], place))
    metrics.answered("/events", "POST", 201, 0.1, may_wait=False)
    monkeypatch.undo()
    metrics.answered("/events", "GET", 200, 0.1, may_wait=False)
    assert Exposition(metrics.exposition().decode()).total("inbox_requests_total") == 1


def test_a_file_is_never_seen_without_its_head(files: MetricFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes

    def write_late(path: Path, data: bytes) -> int:
        path.touch()
        assert Exposition(metrics.exposition().decode()).families
        return write(path, data)

    metrics = Metrics("sqlite", files)
    monkeypatch.setattr(Path, "write_bytes", write_late)
    assert NumberFile(files.folder / "counter_1.db").add('["m", "m_total", {}, "help"]')[0] == 0
    assert Exposition(metrics.exposition().decode()).families


def test_numbers_survive_that_their_file_grows(tmp_path: Path) -> None:
    file = NumberFile(tmp_path / "counter_1.db")
    windows = {number: file.add(f'["m", "m_total", {{"n": "{number}"}}, "{"x" * 100}"]') for number in range(2000)}
    for number, window in windows.items():
        window[0] += number
    file.close()
    (family,) = MultiProcessCollector.merge([str(tmp_path / "counter_1.db")])
    assert {int(sample.labels["n"]): sample.value for sample in family.samples} == {n: n for n in range(2000)}
    assert (tmp_path / "counter_1.db").stat().st_size > 1 << 16


def test_threads_lose_no_count(tmp_path: Path) -> None:
    class SlowToRead(list[float]):
        def __getitem__(self, place: Any) -> Any:
            number = super().__getitem__(place)
            time.sleep(0.0001)
            return number

    value: Any = values_in(tmp_path)("counter", "m", "m_total", (), (), "help")
    value._window = SlowToRead([0.0])

    def count() -> None:
        for _ in range(50):
            value.inc(1)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert value.get() == 400
