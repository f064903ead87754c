"""Every row that `make bench` measures, and its goal."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import backlog, code_lines, cold_import, dynamodb_rows, http_rows, memory, waiting_polls, wake_up_latency
from bench.rounds import Bound, Goal, Round, Row


@dataclass(frozen=True)
class Measurement:
    """A row to measure. `measure_rounds` gets a folder that all measurements of a run share."""

    name: str
    unit: str
    against: str
    goal: Goal
    measure_rounds: Callable[[Path], list[Round]]
    needs_dynamodb: bool = False

    def measure(self, folder: Path) -> Row:
        return Row(self.name, self.unit, self.against, self.goal, self.measure_rounds(folder))


def _at_least(figure: float) -> Goal:
    return Goal(Bound.AT_LEAST, figure)


def _at_most(figure: float, part: str = "ratio") -> Goal:
    return Goal(Bound.AT_MOST, figure, part)


MEASUREMENTS = (
    Measurement("POST /events", "requests/s", "an empty Flask view", _at_least(0.7), http_rows.measure_posts),
    Measurement(
        "POST /events/batch of 100", "events/s", "a bare loop of inserts", _at_least(0.6), http_rows.measure_batches
    ),
    Measurement(
        "GET /inbox, 100 at a time", "events/s", "a bare loop of claims", _at_least(0.6), http_rows.measure_polls
    ),
    Measurement(
        "GET /inbox, empty", "requests/s", "an empty Flask view", _at_least(0.7), http_rows.measure_empty_polls
    ),
    Measurement("GET /inbox, peek of 1", "requests/s", "an empty Flask view", _at_least(0.7), http_rows.measure_peeks),
    Measurement(
        "an empty view, our worker", "requests/s", "gunicorn's gthread", _at_least(1.6), http_rows.measure_our_worker
    ),
    Measurement("5,000 waiting polls: held", "polls", "sent", _at_least(1.0), waiting_polls.measure_held),
    Measurement(
        "5,000 waiting polls: memory", "MB", "none waiting", _at_most(400, "ours"), waiting_polls.measure_memory
    ),
    Measurement(
        "5,000 waiting polls: CPU", "% of a core", "none waiting", _at_most(10, "ours"), waiting_polls.measure_cpu
    ),
    Measurement(
        "5,000 waiting polls: POST /events", "requests/s", "none waiting", _at_least(0.8), waiting_polls.measure_posts
    ),
    Measurement("from POST to a waiting poll, p99", "ms", "p50", _at_most(100, "ours"), wake_up_latency.measure_p99),
    Measurement("poll of 100, 1,000,000 undelivered", "ms", "1,000 undelivered", _at_most(1.2), backlog.measure_polls),
    Measurement("POST /events, 1,000,000 stored", "ms", "1,000 stored", _at_most(1.2), backlog.measure_posts),
    Measurement(
        "DynamoDB: CPU per event sent",
        "ms",
        "boto3, a put_item each",
        _at_most(0.15),
        dynamodb_rows.measure_sends,
        True,
    ),
    Measurement(
        "DynamoDB: CPU per event polled",
        "ms",
        "boto3, an update_item each",
        _at_most(0.15),
        dynamodb_rows.measure_polls,
        True,
    ),
    Measurement("memory after 200,000 events", "MB", "after 10,000", _at_most(1.1), memory.measure_growth),
    Measurement(
        "cold import of the authorizer", "ms", "boto3 alone", _at_most(500, "more"), cold_import.measure_imports
    ),
    Measurement("code of the server layer", "lines", "the layer before", _at_most(0.5), code_lines.count_server_lines),
)
