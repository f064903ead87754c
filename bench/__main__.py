"""`make bench`: prints a table of ratios and writes every round to bench/results.json."""

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.servers import ours, reference

ROUNDS = 5
SECONDS = 3.0
CONNECTIONS = 32
RESULTS = Path(__file__).with_name("results.json")

_EVENT = b'{"event_type": "order.created", "payload": {"order": 1001, "total": 12.5, "currency": "EUR"}}'


@dataclass(frozen=True)
class Round:
    """Answers a second of each, measured one right after the other."""

    ours: float
    reference: float

    @property
    def ratio(self) -> float:
        return self.ours / self.reference


def request(method: str, path: str, key: str = "", body: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def rate(target: str, text: bytes) -> float:
    """Answers a second, over one round."""
    command = [sys.executable, "-m", "bench.load", target, str(CONNECTIONS), str(SECONDS)]
    done = subprocess.run(command, input=text, capture_output=True, check=True, timeout=60)
    counts = json.loads(done.stdout)
    if counts["bad"]:
        raise RuntimeError(f"{counts['bad']} answers were no success")
    return float(counts["good"] / SECONDS)


def compare(target: str, text: bytes, reference_target: str, reference_text: bytes) -> list[Round]:
    """Alternating, so that both see the same weather."""
    return [Round(rate(target, text), rate(reference_target, reference_text)) for _ in range(ROUNDS)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ours(Path(folder)) as (target, key), reference() as empty_view:
        # The empty inbox first: it is empty until the other row fills it.
        rows = {
            "GET /inbox, empty": compare(target, request("GET", "/inbox", key), empty_view, request("GET", "/")),
            "POST /events, on disk": compare(
                target, request("POST", "/events", key, _EVENT), empty_view, request("POST", "/", "", _EVENT)
            ),
        }
    results = {
        name: {"ratio": statistics.median(each.ratio for each in rounds), "rounds": [asdict(each) for each in rounds]}
        for name, rounds in rows.items()
    }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(f"{'row':<24} {'ours/s':>8} {'empty view/s':>13} {'ratio':>6}")
    for name, rounds in rows.items():
        mine, theirs, ratio = (
            statistics.median(getattr(each, part) for each in rounds) for part in ("ours", "reference", "ratio")
        )
        print(f"{name:<24} {mine:>8.0f} {theirs:>13.0f} {ratio:>6.2f}")


if __name__ == "__main__":
    main()
