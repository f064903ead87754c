"""`make profile`: where the workers spend CPU time during POST /events and GET /inbox, empty and full.

py-spy samples the thread that holds the GIL, a hundred times a second. Threads that wait do not count, and neither does
SQLite, which releases the GIL. Flame graphs and stacks go to .cache/profile/.
"""

import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from bench.http_load import EVENT, format_request, measure_rate
from bench.layers import count_by_function, count_by_layer, count_by_our_function, read_stacks
from bench.sample_data import add_events
from bench.servers import BIN, Server, cpu_seconds, run_service

SECONDS = 10.0
ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".cache" / "profile"
_FUNCTIONS = 15


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Path(folder, "empty.db"), Path(folder, "full.db")
        with run_service(empty) as server:
            _profile("empty-poll", server, format_request("GET", "/inbox", server.key))
            _profile("post", server, format_request("POST", "/events", server.key, EVENT))
        # More events than the run can poll, because polls of an empty inbox would distort the profile.
        add_events(full, count=1_200_000)
        with run_service(full) as server:
            _profile("poll", server, format_request("GET", "/inbox?limit=100", server.key))
    print(f"\nFlame graphs and the stacks as text are in {FOLDER.relative_to(ROOT)}/")


def _profile(name: str, server: Server, request_bytes: bytes) -> None:
    measure_rate(server.target, request_bytes, 1)
    before = cpu_seconds(server)
    responses = measure_rate(server.target, request_bytes, SECONDS / 2)
    cpu = (cpu_seconds(server) - before) / (responses * SECONDS / 2)
    print(f"\n{name}: {responses:.0f} responses per second, {1000 * cpu:.2f} ms of worker CPU per response", flush=True)
    stacks = read_stacks(_record(name, "raw", server, request_bytes).read_text())
    _record(name, "flamegraph", server, request_bytes)
    _print_table("layer", count_by_layer(stacks), stacks.total())
    _print_table("function, itself", count_by_function(stacks), stacks.total())
    _print_table("our function, with its callees", count_by_our_function(stacks), stacks.total())


def _record(name: str, output_format: str, server: Server, request_bytes: bytes) -> Path:
    """Runs py-spy while the server is under load, and returns its output file."""
    output = FOLDER / f"{name}.{'svg' if output_format == 'flamegraph' else 'txt'}"
    load = threading.Thread(target=measure_rate, args=(server.target, request_bytes, SECONDS + 2))
    load.start()
    command = [
        *(BIN + "py-spy", "record", "--pid", str(server.pid), "--subprocesses", "--gil"),
        *("--format", output_format, "--duration", str(int(SECONDS)), "--output", str(output)),
    ]
    recording = subprocess.run(command, capture_output=True, timeout=SECONDS + 60)
    load.join()
    if recording.returncode:
        sys.exit(f"error: py-spy failed; it needs root or CAP_SYS_PTRACE:\n{recording.stderr.decode()}")
    return output


def _print_table(heading: str, counts: Counter[str], total: int) -> None:
    print(f"\n  share  {heading}")
    for name, samples in counts.most_common(_FUNCTIONS):
        print(f"  {samples / total:5.1%}  {name}")


if __name__ == "__main__":
    main()
