"""What is measured one right after the other, and what it comes to."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Round:
    ours: float
    reference: float

    @property
    def ratio(self) -> float:
        return self.ours / self.reference

    @property
    def more(self) -> float:
        return self.ours - self.reference


@dataclass(frozen=True)
class Row:
    """`unit` is that of `ours`, `reference` and `more`, the same in every round."""

    unit: str
    rounds: list[Round]

    def median(self, part: str) -> float:
        return statistics.median(float(getattr(each, part)) for each in self.rounds)

    def as_json(self) -> dict[str, Any]:
        rounds = [asdict(each) for each in self.rounds]
        return {"ratio": self.median("ratio"), "more": self.median("more"), "unit": self.unit, "rounds": rounds}
