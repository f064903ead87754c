"""A page that is not true is found out."""

from pathlib import Path

import pytest

from tests.recipes.pages import NotARecipe, parse
from tests.recipes.session import COMMAND_SECONDS, NotAsShown, environment, follow
from tests.service import until

HEAD = "# A recipe\n\nNeeds `INBOX_URL` and `INBOX_API_KEY`, a key with `inbox:read`.\n\n"


def tried(tmp_path: Path, *blocks: str, command_seconds: float = COMMAND_SECONDS) -> None:
    page = parse("page.md", HEAD + "".join(f"```{block}\n```\n\nWords between.\n\n" for block in blocks))
    follow(page, tmp_path, environment("http://127.0.0.1:1", "ibx_secret", tmp_path), command_seconds)


@pytest.mark.parametrize(
    "block",
    [
        "console\n$ echo one\none\n$ echo two\ntwo",
        "console\n$ true",
        "console\n$ echo one \\\n    two\none two",
        "console\n$ echo $INBOX_API_KEY $INBOX_URL\nibx_… http://127.0.0.1:8080",
        "console\n$ echo oops >&2\noops",
        "console\n$ false; echo exit status $?\nexit status 1",
        "console\n$ export A=1\n$ echo $A\n1",
        "console\n$ printf 'a\\nb\\nb\\nc\\n'\na\n…\nc",
        "console\n$ echo '[{\"n\":1}]'\n[{…}]",
        "console\n$ echo d3aac242-ddcb-4545-8ef5-df261c6bebfa 2026-11-16T01:56:44.539Z 1794794204539\n"
        "aaaac242-ddcb-4545-8ef5-df261c6bebfa 2026-11-16T01:56:45Z 1794794204540",
    ],
)
def test_what_is_true_passes(tmp_path: Path, block: str) -> None:
    tried(tmp_path, block)


@pytest.mark.parametrize(
    "block",
    [
        "console\n$ echo one\ntwo",
        "console\n$ echo one",
        "console\n$ true\none",
        "console\n$ echo one\none\ntwo",
        "console\n$ echo axb\na.b",
        "console\n$ printf 'one\\ntwo\\n'\none…",
        "console\n$ printf 'a\\nb\\nc\\n'\na\n…\nd",
        "console\n$ echo d3aac242-ddcb-4545-8ef5-df261c6bebfa\n2026-11-16T01:56:45Z",
        "console" + 2 * "\n$ cat /proc/sys/kernel/random/uuid\nd3aac242-ddcb-4545-8ef5-df261c6bebfa",
    ],
)
def test_other_output_is_found_out(tmp_path: Path, block: str) -> None:
    with pytest.raises(NotAsShown, match="where the page shows"):
        tried(tmp_path, block)


@pytest.mark.parametrize("line", ["false", "exit 3", "cat not-there.txt 2>/dev/null", "not-a-command 2>/dev/null"])
def test_a_command_that_fails_is_found_out(tmp_path: Path, line: str) -> None:
    with pytest.raises(NotAsShown, match="and ended with"):
        tried(tmp_path, f"console\n$ {line}")


def test_a_command_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    with pytest.raises(NotAsShown, match="did not end"):
        tried(tmp_path, "console\n$ sleep 60 & echo $! >sleeper; wait", command_seconds=0.5)
    sleeper = Path("/proc") / (tmp_path / "sleeper").read_text().strip()
    until(lambda: not sleeper.exists())


def test_files_are_saved_before_the_commands_behind_them(tmp_path: Path) -> None:
    tried(tmp_path, "sh job.sh\n#!/bin/sh\necho done", "console\n$ ./job.sh\ndone", "text\nnot run")
    with pytest.raises(NotAsShown, match="and ended with"):
        tried(tmp_path, "console\n$ ./later.sh\ndone", "sh later.sh\n#!/bin/sh\necho done")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEAD, "runs no command"),
        (HEAD + "```text\n$ echo one\n```\n", "runs no command"),
        (HEAD + "```console\nold output\n$ true\n```\n", "does not begin with a command"),
        (HEAD + "```console\n$ true\n```\n\n```json\n{}\n```\n", "neither console"),
        (HEAD + "```console\n$ true\n```\n\n    $ false\n", "where nothing is tried"),
        ("# A recipe\n\n```console\n$ true\n```\n", "does not begin with INBOX_URL"),
        (HEAD.replace("`inbox:read`", "a scope") + "```console\n$ true\n```\n", "the scopes that the key needs"),
    ],
)
def test_a_page_that_looks_tried_and_is_not_is_refused(text: str, why: str) -> None:
    with pytest.raises(NotARecipe, match=why):
        parse("page.md", text)
