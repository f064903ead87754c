"""`make profile`: where the workers spend CPU time during POST /events and GET /inbox, empty and full.

py-spy samples the thread that holds the GIL, a hundred times a second. Waiting threads do not count, and neither does
SQLite, which releases the GIL. Flame graphs and stacks go to .cache/profile/.
"""

import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

from bench.http_load import EVENT, rate, request
from bench.layers import by_function, by_layer, read_stacks, within_ours
from bench.sample_data import fill
from bench.servers import BIN, Server, cpu_seconds, ours

SECONDS = 10.0
ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".cache" / "profile"
_FUNCTIONS = 15


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Path(folder, "empty.db"), Path(folder, "full.db")
        with ours(empty) as server:
            _show("empty-poll", server, request("GET", "/inbox", server.key))
            _show("post", server, request("POST", "/events", server.key, EVENT))
        # More events than the run can poll, because polls of an empty inbox would distort the profile.
        fill(full, waiting=1_200_000)
        with ours(full) as server:
            _show("poll", server, request("GET", "/inbox?limit=100", server.key))
    print(f"\nFlame graphs, and the stacks as text, are in {FOLDER.relative_to(ROOT)}/")


def _show(name: str, server: Server, text: bytes) -> None:
    rate(server.target, text, 1)
    before = cpu_seconds(server)
    responses = rate(server.target, text, SECONDS / 2)
    cpu = (cpu_seconds(server) - before) / (responses * SECONDS / 2)
    print(f"\n{name}: {responses:.0f} responses per second, {1000 * cpu:.2f} ms of worker CPU per response", flush=True)
    stacks = read_stacks(_record(name, "raw", server, text).read_text())
    _record(name, "flamegraph", server, text)
    _table("layer", by_layer(stacks), stacks.total())
    _table("function, itself", by_function(stacks), stacks.total())
    _table("our function, with its callees", within_ours(stacks), stacks.total())


def _record(name: str, form: str, server: Server, text: bytes) -> Path:
    """Runs py-spy while the server is under load, and returns its output file."""
    to = FOLDER / f"{name}.{'svg' if form == 'flamegraph' else 'txt'}"
    load = threading.Thread(target=rate, args=(server.target, text, SECONDS + 2))
    load.start()
    options = ["--subprocesses", "--gil", "--format", form, "--duration", str(int(SECONDS)), "--output", str(to)]
    watch = [BIN + "py-spy", "record", "--pid", str(server.pid), *options]
    watched = subprocess.run(watch, capture_output=True, timeout=SECONDS + 60)
    load.join()
    if watched.returncode:
        sys.exit(f"error: py-spy failed; it needs root or CAP_SYS_PTRACE:\n{watched.stderr.decode()}")
    return to


def _table(heading: str, counts: Counter[str], total: int) -> None:
    print(f"\n  share  {heading}")
    for name, times in counts.most_common(_FUNCTIONS):
        print(f"  {times / total:5.1%}  {name}")


if __name__ == "__main__":
    main()
