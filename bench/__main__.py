"""`make bench`: prints a table of ratios and writes every round to bench/results.json.

Requests are compared with those to an empty Flask view, a deep backlog with a shallow one, the authorizer's cold import
with that of boto3 alone: it should take less than 500 ms more.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.backlog import deep_backlog
from bench.cold_import import cold_import
from bench.rounds import Round, Row
from bench.servers import ours, reference

ROUNDS = 5
SECONDS = 3.0
CONNECTIONS = 32
RESULTS = Path(__file__).with_name("results.json")

_EVENT = b'{"event_type": "order.created", "payload": {"order": 1001, "total": 12.5, "currency": "EUR"}}'


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


def compare(target: str, text: bytes, reference_target: str, reference_text: bytes) -> Row:
    """Alternating, so that both see the same weather."""
    rounds = [Round(rate(target, text), rate(reference_target, reference_text)) for _ in range(ROUNDS)]
    return Row("1/s", rounds)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ours(Path(folder)) as (target, key), reference() as empty_view:
        # The empty inbox first: it is empty until the other row fills it.
        rows = {
            "GET /inbox, empty": compare(target, request("GET", "/inbox", key), empty_view, request("GET", "/")),
            "POST /events, on disk": compare(
                target, request("POST", "/events", key, _EVENT), empty_view, request("POST", "/", "", _EVENT)
            ),
        }
    rows["GET /inbox of 100, deep backlog"] = Row("ms", deep_backlog())
    rows["cold import of the authorizer"] = Row("ms", cold_import())
    RESULTS.write_text(json.dumps({name: row.as_json() for name, row in rows.items()}, indent=2) + "\n")
    print(f"{'row':<32} {'ours':>8} {'reference':>10} {'':<4} {'ratio':>5}")
    for name, row in rows.items():
        figures = f"{row.median('ours'):>8.1f} {row.median('reference'):>10.1f} {row.unit:<4}"
        print(f"{name:<32} {figures} {row.median('ratio'):>5.2f}")


if __name__ == "__main__":
    main()
