"""Rounds of a row, their median and noise, and whether they meet the goal."""

import statistics
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


@dataclass(frozen=True)
class Round:
    """Our figure and that of the reference, measured one after the other."""

    ours: float
    reference: float

    @property
    def ratio(self) -> float:
        return self.ours / self.reference

    @property
    def more(self) -> float:
        return self.ours - self.reference


class Bound(StrEnum):
    AT_LEAST = "at least"
    AT_MOST = "at most"


class Outcome(StrEnum):
    MET = "met"
    WITHIN_NOISE = "within noise"
    MISSED = "missed"


@dataclass(frozen=True)
class Goal:
    """`part` is what the goal limits: the `ratio`, our figure (`ours`), or ours minus the reference (`more`)."""

    bound: Bound
    figure: float
    part: str = "ratio"

    def is_met_by(self, value: float) -> bool:
        return value >= self.figure if self.bound is Bound.AT_LEAST else value <= self.figure


@dataclass(frozen=True)
class Row:
    name: str
    unit: str
    against: str
    goal: Goal
    rounds: list[Round]

    def median(self, part: str) -> float:
        return statistics.median(self.values_of(part))

    def values_of(self, part: str) -> list[float]:
        return [float(getattr(one, part)) for one in self.rounds]

    @property
    def value(self) -> float:
        """Returns the median of the part that the goal limits."""
        return self.median(self.goal.part)

    @property
    def noise(self) -> float:
        """Returns the median absolute deviation of the rounds, which a single outlier does not change."""
        return statistics.median(abs(each - self.value) for each in self.values_of(self.goal.part))

    @property
    def outcome(self) -> Outcome:
        if self.goal.is_met_by(self.value):
            return Outcome.MET
        better = self.noise if self.goal.bound is Bound.AT_LEAST else -self.noise
        return Outcome.WITHIN_NOISE if self.goal.is_met_by(self.value + better) else Outcome.MISSED

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"value": self.value, "noise": self.noise, "outcome": self.outcome}


def parse_row(document: dict[str, Any]) -> Row:
    """Returns the row that `as_json` wrote. Value, noise and outcome are computed from its rounds."""
    goal = document["goal"]
    return Row(
        document["name"],
        document["unit"],
        document["against"],
        Goal(Bound(goal["bound"]), goal["figure"], goal["part"]),
        [Round(**each) for each in document["rounds"]],
    )
