"""`make bench`: measures every row, prints the table, and writes results.json, the chart and the table in the docs.

    python -m bench [--against DIR] [WORD ...]

With words, measures only rows whose names contain one of them; the others keep their results. With --against, compares
this checkout with the one in DIR, which has its own .venv, and writes nothing. Exit status 1 if a goal is missed by
more than the noise or cannot be measured; 2 if no row matches, or DIR has no .venv.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import chart, comparison, report
from bench.rounds import Outcome, Row
from bench.table import MEASUREMENTS
from tests.engines import dynamodb_local


def main(arguments: Sequence[str]) -> int:
    options = _parse_arguments(arguments)
    words, checkout = options.words, options.against
    if checkout and not comparison.inbox_command(checkout).exists():
        print(f"error: {checkout} has no .venv/bin/inbox; run `make install` there", file=sys.stderr)
        return 2
    candidates = comparison.list_measurements(checkout) if checkout else MEASUREMENTS
    chosen = [each for each in candidates if not words or any(word.lower() in each.name.lower() for word in words)]
    if not chosen:
        print(f"error: no row is named {' or '.join(words)}", file=sys.stderr)
        return 2
    possible = [each for each in chosen if not each.needs_dynamodb or dynamodb_local.is_available()]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for number, each in enumerate(possible, 1):
            print(f"{number} of {len(possible)}: {each.name} …", file=sys.stderr)
            rows.append(each.measure(Path(folder)))
            if not checkout:
                # Saved after each row, because a later row may fail.
                report.save(rows, [measurement.name for measurement in MEASUREMENTS])
    print(report.render_table(rows))
    if len(possible) < len(chosen):
        print(dynamodb_local.MISSING, file=sys.stderr)
        return 1
    if not checkout:
        chart.write_chart_and_table()
    return exit_status(rows)


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--against", type=Path, metavar="DIR")
    parser.add_argument("words", nargs="*", metavar="WORD")
    return parser.parse_args(arguments)


def exit_status(rows: Sequence[Row]) -> int:
    return int(any(row.outcome is Outcome.MISSED for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
