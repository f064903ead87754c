"""A page, tried as it is written: its files saved, its commands run by bash, their output held against the page."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.recipes.pages import Command, File, Page

COMMAND_SECONDS = 30

# What is another one each time, and what stands in its place on both sides.
_EACH_TIME = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "(id)"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "(time)"),
    (r"\b\d{13}\b", "(timestamp)"),
    (r"\b[0-9a-f]{32}\b", "(request)"),
    (r'(?<="receipt":")[\w-]{20,}', "(receipt)"),
    (r"key_[0-9a-f]{16}", "key_(id)"),
    (r"ibx_\w+", "ibx_(key)"),
    (r"http://127\.0\.0\.1:\d+", "(url)"),
)
# What a command exports is there for the next one, as in the terminal of somebody who follows the page.
_WITH_EXPORTS = '. ./.exports; eval "$1"; status=$?; export -p >.exports; exit $status'


class NotAsShown(AssertionError):
    """A command did something else than its page says."""


def environment(url: str, key: str, home: Path) -> dict[str, str]:
    """Nothing of the machine's but its programs."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "INBOX_URL": url, "INBOX_API_KEY": key}


def follow(page: Page, folder: Path, variables: dict[str, str]) -> None:
    (folder / ".exports").touch()
    for step in page.steps:
        match step:
            case File(name, text):
                file = folder / name
                file.write_text(text)
                if text.startswith("#!"):
                    file.chmod(0o755)
            case Command(line, shown):
                _hold_against(page.name, line, shown, *_run(line, folder, variables))


def _run(line: str, folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    process = subprocess.Popen(
        ["bash", "-c", _WITH_EXPORTS, "bash", line],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A session of its own, so that all it started can be ended by one number.
        start_new_session=True,
    )
    with process:
        try:
            output, _ = process.communicate(timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired as slow:
            os.killpg(process.pid, signal.SIGKILL)
            raise NotAsShown(f"$ {line}\ndid not end within {COMMAND_SECONDS} seconds") from slow
    return process.returncode, output


def _hold_against(page: str, line: str, shown: str, status: int, output: str) -> None:
    told = f"{page}\n$ {line}\nprinted\n{output}"
    if status != 0:
        raise NotAsShown(f"{told}and ended with {status}")
    if not re.fullmatch(_pattern(shown), _same_each_time(output)):
        raise NotAsShown(f"{told}where the page shows\n{shown}")


def _same_each_time(text: str) -> str:
    for pattern, placeholder in _EACH_TIME:
        text = re.sub(pattern, placeholder, text)
    return text


def _pattern(shown: str) -> str:
    """`…` stands for anything in its line, and alone in a line for any lines."""
    lines = _same_each_time(shown).splitlines(keepends=True)
    return "".join("(?s:.*)" if line == "…\n" else re.escape(line).replace("…", ".*") for line in lines)
