"""Parses a recipe page: files to save and commands to run, in order, with the output that the page shows."""

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "how-to" / "recipes"
INDEX = FOLDER / "README.md"
_SCOPES = re.compile("`(events:write|inbox:read|tenant:manage)`")
_BLOCK = re.compile(r"^```(.*)\n((?s:.*?))^```$", re.MULTILINE)


class NotARecipe(Exception):
    """The page cannot be run. The text says why."""


@dataclass(frozen=True, slots=True)
class File:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    shown: str
    """The output on the page."""


@dataclass(frozen=True, slots=True)
class Page:
    name: str
    scopes: tuple[str, ...]
    steps: tuple[File | Command, ...]

    def file(self, name: str) -> str:
        """Returns the text of the only file with this name."""
        (text,) = [step.text for step in self.steps if isinstance(step, File) and step.name == name]
        return text


def list_names() -> list[str]:
    """Returns the file names of the recipes."""
    return sorted(file.name for file in FOLDER.glob("*.md") if file != INDEX)


def read(name: str) -> Page:
    return parse(name, (FOLDER / name).read_text())


def parse(name: str, text: str) -> Page:
    head = text.partition("\n```")[0].partition("\n## ")[0]
    scopes = tuple(_SCOPES.findall(head))
    if not ("`INBOX_URL`" in head and "`INBOX_API_KEY`" in head and scopes):
        raise NotARecipe(f"{name} does not begin with INBOX_URL, INBOX_API_KEY and the scopes that the key needs")
    return Page(name, scopes, steps_of(name, text))


def steps_of(name: str, text: str) -> tuple[File | Command, ...]:
    """Returns the files and commands of a page, which need not be a recipe."""
    steps: list[File | Command] = []
    for words, content in _BLOCK.findall(text):
        match words.split():
            case ["console"]:
                steps += _parse_commands(name, content)
            case ["text"]:
                pass
            case [_, file]:
                steps.append(File(file, content))
            case _:
                raise NotARecipe(f"{name} has a block ```{words}, which is not console, text or a named file")
    if re.search(r"^ {4,}\$ ", _BLOCK.sub("", text), re.MULTILINE):
        raise NotARecipe(f"{name} shows a command outside of a ```console block, where no test runs it")
    if not any(isinstance(step, Command) for step in steps):
        raise NotARecipe(f"{name} has no command to run")
    return tuple(steps)


def _parse_commands(name: str, content: str) -> list[Command]:
    before, *parts = re.split(r"^\$ ", content, flags=re.MULTILINE)
    if before or not parts:
        raise NotARecipe(f"{name} has a block ```console that does not begin with a command")
    commands = []
    for part in parts:
        # A backslash at the end of a line continues the command.
        line, shown = re.fullmatch(r"((?:.*\\\n)*.*\n)((?s:.*))", part).groups()  # type: ignore[union-attr]
        commands.append(Command(line.strip(), shown))
    return commands
