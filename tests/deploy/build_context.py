"""Copies the build context: the checkout without the files that .dockerignore excludes."""

import re
import shutil
from pathlib import Path


def copy_of(checkout: Path, context: Path) -> None:
    rules = _rules((checkout / ".dockerignore").read_text())
    for file in _files(checkout, checkout, rules):
        target = context / file.relative_to(checkout)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)


def _files(folder: Path, checkout: Path, rules: list[tuple[bool, re.Pattern[str]]]) -> list[Path]:
    found = []
    for entry in folder.iterdir():
        # Excluded top-level folders are skipped: none of our rules includes a file inside one.
        if folder != checkout or not _is_left_out(entry.name, rules):
            if entry.is_dir():
                found += _files(entry, checkout, rules)
            elif not _is_left_out(entry.relative_to(checkout).as_posix(), rules):
                found.append(entry)
    return found


def _is_left_out(path: str, rules: list[tuple[bool, re.Pattern[str]]]) -> bool:
    """The last rule that matches the path or a parent folder decides."""
    fitting = [leaves_out for leaves_out, pattern in rules if pattern.fullmatch(path)]
    return bool(fitting) and fitting[-1]


def _rules(text: str) -> list[tuple[bool, re.Pattern[str]]]:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(not line.startswith("!"), _pattern(line.removeprefix("!").strip("/"))) for line in lines]


def _pattern(rule: str) -> re.Pattern[str]:
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", rule)
    return re.compile("".join(parts.get(piece, re.escape(piece)) for piece in pieces) + "(?:/.*)?")
