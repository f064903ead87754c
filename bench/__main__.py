"""`make bench`: measures every row, prints the table, and writes results.json, the chart and the table in the docs.

    python -m bench [WORD ...]

With words, only the rows that have one of them in their names, and nothing is written. Exit status 1 where a goal is
missed by more than the noise, or could not be measured; 2 where no row has such a name.
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import chart, report
from bench.rounds import Outcome, Row
from bench.table import MEASUREMENTS, Measurement
from tests.engines import dynamodb_local


def main(words: Sequence[str]) -> int:
    chosen = [each for each in MEASUREMENTS if not words or any(word.lower() in each.name.lower() for word in words)]
    if not chosen:
        print(f"No row has such a word in its name: {', '.join(words)}", file=sys.stderr)
        return 2
    possible = [each for each in chosen if not each.needs_dynamodb or dynamodb_local.is_there()]
    rows = _measure(possible)
    print(report.text_table(rows))
    if len(possible) < len(chosen):
        print("DynamoDB Local DID NOT RUN: `make engines` says what is missing. Nothing was written.", file=sys.stderr)
        return 1
    if not words:
        report.save(rows)
        chart.redraw()
    return exit_status(rows)


def exit_status(rows: Sequence[Row]) -> int:
    return int(any(row.outcome is Outcome.MISSED for row in rows))


def _measure(measurements: Sequence[Measurement]) -> list[Row]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, each in enumerate(measurements, 1):
            print(f"{number} of {len(measurements)}: {each.name} …", file=sys.stderr)
            rows.append(each.row(Path(folder)))
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
