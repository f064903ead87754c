"""A page, tried as it is written: its files saved, its commands run by bash, their output held against the page."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.recipes.pages import Command, File, Page

COMMAND_SECONDS = 30

_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_RECEIPT = r'(?<="receipt":")[\w-]{20,}'
# The page shows one value, each run prints another. Later commands on the page that repeat it get the printed one.
_REMEMBERED = re.compile(f"{_ID}|key_[0-9a-f]{{16}}|{_RECEIPT}")
# How pages write a key.
_SHOWN_KEY = "ibx_…"
# What else is another one each time, and what stands in its place on both sides.
_EACH_TIME = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "(time)"),
    (r"\b\d{13}\b", "(timestamp)"),
    (r"\b[0-9a-f]{32}\b", "(request)"),
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


def follow(page: Page, folder: Path, variables: dict[str, str], command_seconds: float = COMMAND_SECONDS) -> None:
    """From where an earlier one left off, where it was in the same folder."""
    (folder / ".exports").touch()
    printed: dict[str, str] = {_SHOWN_KEY: variables.get("INBOX_API_KEY", _SHOWN_KEY)}
    for step in page.steps:
        match step:
            case File(name, text):
                file = folder / name
                file.write_text(text)
                if text.startswith("#!"):
                    file.chmod(0o755)
            case Command(line, shown):
                for on_page, value in printed.items():
                    line = line.replace(on_page, value)
                status, output = _run(line, folder, variables, command_seconds)
                told = f"{page.name}\n$ {line}\nprinted\n{output}"
                if status != 0:
                    raise NotAsShown(f"{told}and ended with {status}")
                _hold_against(shown, output, printed, told)


def _run(line: str, folder: Path, variables: dict[str, str], seconds: float) -> tuple[int, str]:
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
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as slow:
            os.killpg(process.pid, signal.SIGKILL)
            raise NotAsShown(f"$ {line}\ndid not end within {seconds} seconds") from slow
    return process.returncode, output


def _hold_against(shown: str, output: str, printed: dict[str, str], told: str) -> None:
    """Adds what was printed for each remembered value on the page. A value that comes again has to be the same."""
    differs = NotAsShown(f"{told}where the page shows\n{shown}")
    found = re.fullmatch(_pattern(shown), _same_each_time(output))
    if found is None:
        raise differs
    for on_page, value in zip(_REMEMBERED.findall(shown), found.groups(), strict=True):
        if printed.setdefault(on_page, value) != value:
            raise differs
    for key in re.findall(r"ibx_\w+", output):
        printed[_SHOWN_KEY] = key


def _same_each_time(text: str) -> str:
    for pattern, placeholder in _EACH_TIME:
        text = re.sub(pattern, placeholder, text)
    return text


def _pattern(shown: str) -> str:
    """`…` stands for anything in its line, and alone in a line for any lines; a group for each remembered value."""
    lines = _same_each_time(shown).splitlines(keepends=True)
    return "".join("(?s:.*)" if line == "…\n" else _of_line(line) for line in lines)


def _of_line(line: str) -> str:
    return f"({_REMEMBERED.pattern})".join(re.escape(piece).replace("…", ".*") for piece in _REMEMBERED.split(line))
