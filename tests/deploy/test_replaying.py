"""Replaying a Dockerfile on machines that are set up in other ways."""

import sys
from pathlib import Path

import pytest

from tests.deploy import replaying
from tests.engines import container


def test_python_may_be_where_the_image_has_its_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "PYTHON", Path("/opt/tools/bin/python"))
    assert replaying.base_in(tmp_path).path("/opt/tools/bin/python").is_symlink()


@pytest.mark.usefixtures("containers")
def test_without_a_python_that_runs_in_it_there_is_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/nowhere/python")
    assert not container.is_available()


@pytest.mark.usefixtures("containers")
def test_where_nothing_can_be_written_beside_python_there_is_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "WRITTEN_TO", ("/opt", "/proc"))
    assert not container.is_available()
