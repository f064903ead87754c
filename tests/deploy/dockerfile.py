"""Parses our Dockerfile. Raises ValueError for instructions that it does not use."""

import json
import re
from dataclasses import dataclass

_BUILD_INSTRUCTIONS = {"FROM", "WORKDIR", "RUN", "COPY", "ENV"}
_RUN_INSTRUCTIONS = {"USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "CMD"}


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction. `options` are its words `--name=value`, and `rest` is the text after them."""

    instruction: str
    options: dict[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        return self.rest.split()

    @property
    def command(self) -> list[str]:
        """Returns the list of arguments in a JSON array. Other text is a shell command."""
        if self.rest.startswith("["):
            return [str(word) for word in json.loads(self.rest)]
        return ["/bin/sh", "-c", self.rest]


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    base: str
    steps: list[Step]

    def only(self, instruction: str) -> Step:
        """Returns the one step with this instruction."""
        (step,) = [step for step in self.steps if step.instruction == instruction]
        return step


def parse_stages(text: str) -> list[Stage]:
    stages: list[Stage] = []
    for line in _split_instructions(text):
        step = _parse_step(line)
        if step.instruction == "FROM":
            base, name = re.fullmatch(r"(\S+)(?: AS (\S+))?", step.rest).groups(default="")  # type: ignore[union-attr]
            stages.append(Stage(name, base, []))
        else:
            stages[-1].steps.append(step)
    return stages


def read_variables(step: Step, earlier: dict[str, str]) -> dict[str, str]:
    """Returns the variables of an ENV, with references replaced by earlier values."""
    pairs = dict(word.split("=", 1) for word in step.words)
    return {name: re.sub(r"\$(\w+)", lambda found: earlier[found[1]], value) for name, value in pairs.items()}


def _split_instructions(text: str) -> list[str]:
    without_comments = re.sub(r"^[ \t]*#.*\n", "", text, flags=re.MULTILINE)
    joined = re.sub(r"\\\n\s*", "", without_comments)
    return [line for line in joined.splitlines() if line.strip()]


def _parse_step(line: str) -> Step:
    instruction, _, rest = line.partition(" ")
    if instruction not in _BUILD_INSTRUCTIONS | _RUN_INSTRUCTIONS:
        raise ValueError(f"unknown instruction: {line}")
    options = {}
    while option := re.match(r"--([a-z-]+)=(\S+)\s+", rest):
        options[option[1]] = option[2]
        rest = rest[option.end() :]
    if instruction == "HEALTHCHECK":
        rest = rest.removeprefix("CMD ")
    return Step(instruction, options, rest.strip())
