"""Follows a page: saves its files, runs its commands with bash, and compares their output with the page."""

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
# Values that differ in each run. If a later command on the page repeats one, it gets the printed value.
_REMEMBERED = re.compile(f"{_ID}|key_[0-9a-f]{{16}}|{_RECEIPT}")
# The key on every page.
_SHOWN_KEY = "ibx_…"
# Other values that differ in each run, with the placeholders that replace them for the comparison.
_PLACEHOLDERS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "(time)"),
    (r"\b\d{13}\b", "(timestamp)"),
    (r"\b[0-9a-f]{32}\b", "(request)"),
    (r"ibx_\w+", "ibx_(key)"),
    (r"http://127\.0\.0\.1:\d+", "(url)"),
)
# Exported variables are kept for the next command, as in a terminal.
_WITH_EXPORTS = '. ./.exports; eval "$1"; status=$?; export -p >.exports; exit $status'


class NotAsShown(AssertionError):
    """A command's output differs from its page, or the command failed."""


def make_environment(url: str, key: str, home: Path) -> dict[str, str]:
    """Returns the variables for the commands. They inherit only PATH, with this Python in front."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "INBOX_URL": url, "INBOX_API_KEY": key}


def follow(page: Page, folder: Path, variables: dict[str, str], command_seconds: float = COMMAND_SECONDS) -> None:
    """Runs the page. In the folder of an earlier page, it continues with that page's exported variables."""
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
                report = f"{page.name}\n$ {line}\nprinted\n{output}"
                if status != 0:
                    raise NotAsShown(f"{report}and exited with {status}")
                _compare(shown, output, printed, report)


def _run(line: str, folder: Path, variables: dict[str, str], timeout_seconds: float) -> tuple[int, str]:
    process = subprocess.Popen(
        ["bash", "-c", _WITH_EXPORTS, "bash", line],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # In its own session, so that one signal reaches all its processes.
        start_new_session=True,
    )
    with process:
        try:
            output, _ = process.communicate(timeout=timeout_seconds)
        except subprocess.TimeoutExpired as slow:
            os.killpg(process.pid, signal.SIGKILL)
            raise NotAsShown(f"$ {line}\ndid not end within {timeout_seconds} seconds") from slow
    return process.returncode, output


def _compare(shown: str, output: str, printed: dict[str, str], report: str) -> None:
    """Compares the output with the page. Adds the value that was printed for each remembered value to `printed`."""
    differs = NotAsShown(f"{report}but the page shows\n{shown}")
    found = re.fullmatch(_make_pattern(shown), _replace_varying_values(output))
    if found is None:
        raise differs
    for on_page, value in zip(_REMEMBERED.findall(shown), found.groups(), strict=True):
        if printed.setdefault(on_page, value) != value:
            raise differs
    for key in re.findall(r"ibx_\w+", output):
        printed[_SHOWN_KEY] = key


def _replace_varying_values(text: str) -> str:
    for pattern, placeholder in _PLACEHOLDERS:
        text = re.sub(pattern, placeholder, text)
    return text


def _make_pattern(shown: str) -> str:
    """Returns a pattern with a group per remembered value. `…` matches any text in its line, or any lines if alone."""
    lines = _replace_varying_values(shown).splitlines(keepends=True)
    return "".join("(?s:.*)" if line == "…\n" else _make_line_pattern(line) for line in lines)


def _make_line_pattern(line: str) -> str:
    return f"({_REMEMBERED.pattern})".join(re.escape(piece).replace("…", ".*") for piece in _REMEMBERED.split(line))
