"""Groups the stacks that py-spy sampled by layer and by function."""

from collections import Counter
from collections.abc import Iterable

# The first match counts. A frame of the standard library counts for its caller.
_LAYERS = (
    ("inbox/store/", "store"),
    ("inbox/domain/exact_json", "JSON"),
    ("orjson", "JSON"),
    ("inbox/api/access_log", "log line"),
    ("inbox/server/logs", "log line"),
    ("structlog/", "log line"),
    ("logging/", "log line"),
    ("marshmallow/", "schemas"),
    ("inbox/api/auth", "keys and limits"),
    ("inbox/auth/", "keys and limits"),
    ("authorizer/", "keys and limits"),
    ("inbox/server", "server"),
    ("inbox/", "our API and use cases"),
    ("flask/", "Flask and Werkzeug"),
    ("werkzeug/", "Flask and Werkzeug"),
    ("gunicorn/", "gunicorn"),
    ("concurrent/futures/", "gunicorn"),
)


def read_stacks(raw: str) -> Counter[tuple[str, ...]]:
    """Returns the samples of each stack. A line of `raw` has its frames, outermost first, and a number of samples."""
    stacks: Counter[tuple[str, ...]] = Counter()
    for line in raw.splitlines():
        frames, samples = line.rsplit(" ", 1)
        # The first frames name the processes.
        stacks[tuple(each for each in frames.split(";") if not each.startswith("process "))] += int(samples)
    return stacks


def count_by_layer(stacks: Counter[tuple[str, ...]]) -> Counter[str]:
    return _add_up((_find_layer(frames), samples) for frames, samples in stacks.items())


def count_by_function(stacks: Counter[tuple[str, ...]]) -> Counter[str]:
    """Returns the samples of each innermost function, without its line number."""
    return _add_up((_strip_line_number(frames[-1]), samples) for frames, samples in stacks.items())


def count_by_our_function(stacks: Counter[tuple[str, ...]]) -> Counter[str]:
    """Returns the samples of each of our functions, including those of its callees."""
    return _add_up(
        (name, samples)
        for frames, samples in stacks.items()
        for name in {_strip_line_number(each) for each in frames if "(inbox/" in each}
    )


def _find_layer(frames: tuple[str, ...]) -> str:
    for frame in reversed(frames):
        file = frame.rpartition(" (")[2]
        for beginning, layer in _LAYERS:
            if file.startswith(beginning):
                return layer
    return "other"


def _strip_line_number(frame: str) -> str:
    name, colon, line = frame.rstrip(")").rpartition(":")
    return f"{name})" if colon and line.isdigit() else frame


def _add_up(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for name, samples in counts:
        total[name] += samples
    return total
