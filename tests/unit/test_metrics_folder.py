"""Metrics of several processes in one folder."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.values import MultiProcessValue
from structlog.testing import capture_logs

from inbox.metrics import folder as metrics_folder_module
from inbox.metrics.folder import create_metrics_folder, remove_gauges
from inbox.metrics.service_metrics import Metrics
from tests.exposition import Exposition


def count_as(pid: int, folder: Path, monkeypatch: pytest.MonkeyPatch, responses: int, waiting: int = 0) -> None:
    """Counts responses and waiting polls as the process with this PID does."""
    with monkeypatch.context() as patch:
        patch.setattr("inbox.metrics.service_metrics.MultiProcessValue", lambda: MultiProcessValue(lambda: pid))
        metrics = Metrics("sqlite", folder)
    for number in range(responses):
        metrics.observe_response("/events", "POST", 201, number / 100, may_wait=False)
    for _ in range(waiting):
        metrics.add_waiting_polls(1)


def exposition_of(folder: Path) -> Exposition:
    return Exposition(Metrics("sqlite", folder).exposition().decode())


def sum_responses(folder: Path) -> tuple[float, float, float]:
    """Returns the number of responses by the counter and by the histogram, and their total seconds."""
    found = exposition_of(folder)
    return (
        found.total("inbox_requests_total"),
        found.total("inbox_request_duration_seconds_count"),
        round(found.total("inbox_request_duration_seconds_sum"), 6),
    )


def test_counts_of_all_processes_are_added_up(metrics_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_as(1, metrics_folder, monkeypatch, responses=3, waiting=2)
    count_as(2, metrics_folder, monkeypatch, responses=4, waiting=1)
    assert sum_responses(metrics_folder) == (7, 7, 0.09)
    assert exposition_of(metrics_folder).value("inbox_waiting_polls") == 3
    bucket = {"route": "/events", "method": "POST", "le": "0.01"}
    assert exposition_of(metrics_folder).value("inbox_request_duration_seconds_bucket", **bucket) == 4


def test_file_that_a_starting_process_has_not_written_yet_is_skipped(
    metrics_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_as(1, metrics_folder, monkeypatch, responses=3)
    (metrics_folder / "counter_2.db").touch()
    assert sum_responses(metrics_folder)[0] == 3


def test_ended_process_keeps_its_counters_but_not_its_gauges(
    metrics_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_as(1, metrics_folder, monkeypatch, responses=3, waiting=2)
    count_as(2, metrics_folder, monkeypatch, responses=4, waiting=1)
    remove_gauges(metrics_folder, 1)
    assert sum_responses(metrics_folder) == (7, 7, 0.09)
    assert exposition_of(metrics_folder).value("inbox_waiting_polls") == 1


def test_process_with_a_reused_pid_continues_its_counters(
    metrics_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_as(1, metrics_folder, monkeypatch, responses=3)
    count_as(1, metrics_folder, monkeypatch, responses=4)
    assert sum_responses(metrics_folder)[0] == 7


def test_process_starts_after_its_folder_was_deleted(metrics_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Metrics("sqlite", metrics_folder)
    shutil.rmtree(metrics_folder)
    assert b"inbox_build_info" in before.exposition()
    count_as(1, metrics_folder, monkeypatch, responses=3)
    assert sum_responses(metrics_folder)[0] == 3


def test_folder_is_private_and_removed_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_folder_module, "SHARED_MEMORY", tmp_path)
    with create_metrics_folder() as folder:
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []


def test_new_service_removes_abandoned_folders_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_folder_module, "SHARED_MEMORY", tmp_path)
    abandoned, link = tmp_path / "inbox-metrics-abandoned", tmp_path / "inbox-metrics-link"
    abandoned.mkdir()
    (abandoned / "counter_1.db").touch()
    link.symlink_to(tmp_path)
    with create_metrics_folder() as first, create_metrics_folder() as second:
        assert set(tmp_path.iterdir()) == {first, second, link}


def test_folder_outlives_forked_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_folder_module, "SHARED_MEMORY", tmp_path)
    context = create_metrics_folder()
    folder = context.__enter__()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)
        context.__exit__(None, None, None)
    assert folder.exists()


def test_folder_is_temporary_without_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_folder_module, "SHARED_MEMORY", tmp_path / "none")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with create_metrics_folder() as folder:
        assert folder.parent == tmp_path


def test_process_without_room_for_files_shows_the_counts_of_others(
    metrics_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_as(1, metrics_folder, monkeypatch, responses=3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=4096))
    with capture_logs() as log:
        count_as(2, metrics_folder, monkeypatch, responses=4)
    assert [line["log_level"] for line in log] == ["warning"]
    assert {file.name.rpartition("_")[2] for file in metrics_folder.iterdir()} == {"1.db"}
    assert sum_responses(metrics_folder)[0] == 3
