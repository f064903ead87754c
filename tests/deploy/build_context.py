"""What an engine would be sent to build from: the checkout without what .dockerignore leaves out."""

import re
import shutil
from pathlib import Path


def copy_of(checkout: Path, context: Path) -> None:
    """Files only: folders are there where a file is in them."""
    rules = _rules((checkout / ".dockerignore").read_text())
    for file in _files(checkout, checkout, rules):
        target = context / file.relative_to(checkout)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)


def _files(folder: Path, checkout: Path, rules: list[tuple[bool, re.Pattern[str]]]) -> list[Path]:
    found = []
    for entry in folder.iterdir():
        # What is left out on the first level is not looked into: no rule here brings back what is further down.
        if folder != checkout or not _is_left_out(entry.name, rules):
            if entry.is_dir():
                found += _files(entry, checkout, rules)
            elif not _is_left_out(entry.relative_to(checkout).as_posix(), rules):
                found.append(entry)
    return found


def _is_left_out(path: str, rules: list[tuple[bool, re.Pattern[str]]]) -> bool:
    """The last rule that fits the path or a folder above it decides."""
    fitting = [leaves_out for leaves_out, pattern in rules if pattern.fullmatch(path)]
    return bool(fitting) and fitting[-1]


def _rules(text: str) -> list[tuple[bool, re.Pattern[str]]]:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(not line.startswith("!"), _pattern(line.removeprefix("!").strip("/"))) for line in lines]


def _pattern(rule: str) -> re.Pattern[str]:
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", rule)
    return re.compile("".join(parts.get(piece, re.escape(piece)) for piece in pieces) + "(?:/.*)?")
