"""Compares the product's calls to DynamoDB during a test run with `calls.json`.

test_permissions.py compares that file with the IAM policies, so a policy has exactly the permissions that a whole test
run uses.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.recorder import call_recorder
from tests.engines import dynamodb_local

CALLS = Path(__file__).with_name("calls.json")

_PLUGIN = Path(call_recorder.__file__).stem

# pytest's processes import the plugin from here, because their path is already set. Processes that they start find it
# on PYTHONPATH.
sys.modules[_PLUGIN] = call_recorder

_SELECTING_OPTIONS = ("collectonly", "deselect", "ignore", "ignore_glob", "keyword", "lf", "stepwise")
# Values of `-m` that select a whole suite.
_WHOLE_SUITES = ("", "not slow")
_INSTRUCTION = f"Add the missing test, or change {CALLS.name} and then the policies that test_permissions.py names."


def read_known_permissions() -> dict[str, set[str]]:
    """Returns the permissions that each program needs."""
    return {program: set(permissions) for program, permissions in json.loads(CALLS.read_text()).items()}


class CallRecording:
    """A pytest plugin for the main process, which starts all others."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="recorded-calls-")
        self._differences: list[str] = []
        path = [*filter(None, [os.environ.get("PYTHONPATH")]), str(Path(call_recorder.__file__).parent)]
        os.environ |= {
            "BOTOCORE_EXPERIMENTAL__PLUGINS": f"recorder={_PLUGIN}",
            "PYTHONPATH": os.pathsep.join(path),
            call_recorder.FOLDER: self._folder.name,
        }

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        is_whole = exitstatus == pytest.ExitCode.OK and _is_whole_run(session.config)
        self._differences = list(find_differences(Path(self._folder.name), is_whole=is_whole))
        if self._differences and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in [*self._differences, _INSTRUCTION] if self._differences else []:
            terminalreporter.write_line(line, red=True, bold=True)

    def pytest_unconfigure(self) -> None:
        self._folder.cleanup()


def find_differences(folder: Path, *, is_whole: bool) -> Iterator[str]:
    """Yields calls that `calls.json` does not have and, after a whole run, entries that no test has used."""
    known, seen = read_known_permissions(), dict[str, set[str]]()
    lines = sorted({line for file in folder.iterdir() for line in file.read_text().splitlines()})
    for program, permission, caller in (line.split("\t") for line in lines):
        if permission not in known.get(program, set()) | seen.setdefault(program, set()):
            yield f"NOT IN {CALLS.name}: {program} needs {permission}, for {caller}"
        seen[program].add(permission)
    if is_whole:
        for program, permissions in known.items():
            for permission in sorted(permissions - seen.get(program, set())):
                yield f"IN {CALLS.name} BUT NOT USED BY ANY TEST: {program}, {permission}"


def _is_whole_run(config: pytest.Config) -> bool:
    is_selection = any(getattr(config.option, each, None) for each in _SELECTING_OPTIONS)
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and config.option.markexpr in _WHOLE_SUITES
    return is_whole and not is_selection and dynamodb_local.is_available()
