"""Every command of every recipe prints what its page shows."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.recipes import pages, session
from tests.service import Service


@pytest.mark.usefixtures("recipe_programs")
@pytest.mark.parametrize("name", pages.list_names())
def test_every_command_of_the_recipe_works(
    name: str, running_service: Service, new_key: Callable[[Sequence[str]], str], tmp_path: Path
) -> None:
    page = pages.read(name)
    key = new_key(page.scopes)
    session.follow(page, tmp_path, session.make_environment(running_service.url, key, tmp_path))


def test_index_lists_every_recipe() -> None:
    index = pages.INDEX.read_text()
    assert [name for name in pages.list_names() if f"]({name})" not in index] == []
