"""README.md, followed as a newcomer does: from `make run` to a lease, a second start, a lost key and a second inbox."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recipes import pages, session
from tests.recipes.pages import Page
from tests.service import Service, until

ROOT = Path(__file__).parents[2]
URL_ON_PAGE = "http://127.0.0.1:8080"
SECOND_START = "### Stop, start again"
KEY = re.compile(r"ibx_\w+")


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Service]:
    """A fresh clone whose requirements are installed. Everything has its default but the port."""
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    service = Service(tmp_path)
    service.variables = {"INBOX_STORE": "sqlite:///data/inbox.db"}
    yield service
    service.stop()


def make_run(newcomer: Service) -> str:
    """Returns what the start printed."""
    newcomer.log.unlink(missing_ok=True)
    # `-o`: never installs into the environment that the tests run in.
    newcomer.start_process(["make", "--no-print-directory", "-o", ".venv/.run", "run"], newcomer.folder)
    until(lambda: "Polling Inbox is running" in newcomer.log.read_text())
    return newcomer.log.read_text()


def follow(newcomer: Service, part: str, key: str) -> None:
    page = Page("README.md", (), pages.steps_of("README.md", part.replace(URL_ON_PAGE, newcomer.url)))
    session.follow(page, newcomer.folder, session.environment(newcomer.url, key, newcomer.folder))


@pytest.mark.usefixtures("recipe_programs")
def test_every_command_works_in_the_order_it_is_read(newcomer: Service) -> None:
    first_part, second_part = (ROOT / "README.md").read_text().split(SECOND_START)

    (key,) = set(KEY.findall(make_run(newcomer)))
    follow(newcomer, first_part, key)

    newcomer.stop()
    assert KEY.search(make_run(newcomer)) is None
    follow(newcomer, second_part, "the key is lost")
