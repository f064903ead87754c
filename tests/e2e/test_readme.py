"""Runs every command of README.md, docs/quickstart.md and the guides in docs/how-to."""

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
SECOND_START = "## Stop, start again"
README = ROOT / "README.md"
QUICKSTART = ROOT / "docs" / "quickstart.md"
KEY = re.compile(r"ibx_\w+")
HOW_TO = ROOT / "docs" / "how-to"


@pytest.fixture
def fresh_clone(tmp_path: Path) -> Iterator[Service]:
    """Returns a service in a new clone with installed requirements. All settings but the port have their defaults."""
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    service = Service(tmp_path)
    service.variables = {"INBOX_STORE": "sqlite:///data/inbox.db"}
    yield service
    service.stop()


def make_run(fresh_clone: Service) -> str:
    """Runs `make run`, and returns the output of the start."""
    fresh_clone.log.unlink(missing_ok=True)
    # `-o`: never installs into the environment that the tests run in.
    fresh_clone.start_process(["make", "--no-print-directory", "-o", ".venv/.run", "run"], fresh_clone.folder)
    until(lambda: "Polling Inbox is running" in fresh_clone.log.read_text())
    return fresh_clone.log.read_text()


def follow(service: Service, name: str, part: str, key: str) -> None:
    page = Page(name, (), pages.steps_of(name, part.replace(URL_ON_PAGE, service.url)))
    variables = session.make_environment(service.url, key, service.folder)
    session.follow(page, service.folder, variables | {"INBOX_STORE": service.environment["INBOX_STORE"]})


def list_guides() -> list[str]:
    """Returns the pages that show commands with their output."""
    return sorted(file.name for file in HOW_TO.glob("*.md") if "```console" in file.read_text())


@pytest.mark.usefixtures("recipe_programs")
def test_every_command_works_in_the_order_of_the_pages(fresh_clone: Service) -> None:
    first_part, second_part = QUICKSTART.read_text().split(SECOND_START)

    (key,) = set(KEY.findall(make_run(fresh_clone)))
    follow(fresh_clone, "README.md", README.read_text(), key)
    follow(fresh_clone, QUICKSTART.name, first_part, key)

    fresh_clone.stop()
    assert KEY.search(make_run(fresh_clone)) is None
    follow(fresh_clone, QUICKSTART.name, second_part, "the key is lost")
    # Two guides once more, because they show how many events the other guides have left.
    for name in (*list_guides(), "replay-events.md", "monitor.md"):
        follow(fresh_clone, name, (HOW_TO / name).read_text(), key)


@pytest.mark.usefixtures("recipe_programs")
@pytest.mark.parametrize("name", list_guides())
def test_guide_works_as_it_is_written(name: str, service: Service) -> None:
    service.start()
    follow(service, name, (HOW_TO / name).read_text(), service.create_key("demo", "--scope", "all"))
