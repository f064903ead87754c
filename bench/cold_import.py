"""Time to import the authorizer in a new process, as at a Lambda's cold start, against boto3 alone."""

import subprocess
import sys
from pathlib import Path

from bench.rounds import Round

ROUNDS = 15
_SCRIPT = "import time; started = time.perf_counter(); import {}; print(time.perf_counter() - started)"


def measure_imports(_folder: Path) -> list[Round]:
    """Returns milliseconds to import the handler and, as the reference, boto3."""
    measured = [Round(_time_import("authorizer.lambda_handler"), _time_import("boto3")) for _ in range(ROUNDS + 1)]
    # The first round only warms the disk cache.
    return measured[1:]


def _time_import(module: str) -> float:
    command = [sys.executable, "-c", _SCRIPT.format(module)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return 1000 * float(done.stdout)
