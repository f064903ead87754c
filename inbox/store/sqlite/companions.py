"""The files that SQLite keeps beside a database. They are a part of it."""

import os
from pathlib import Path

from inbox.errors import StoreUnavailable

LOG, JOURNAL = "-wal", "-journal"
COMPANIONS = (LOG, "-shm", JOURNAL)


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def behind_links(path: Path) -> Path:
    """The file itself: SQLite follows links, and has the companions beside what they lead to."""
    # Not Path.resolve, which fails on a loop of links up to Python 3.12.
    return Path(os.path.realpath(path))


def refuse_to_replace(path: Path) -> None:
    """A file of which only the companions are left: they may hold events, or belong to a service that is running."""
    file = behind_links(path)
    # The companions first: whoever makes a new file at this moment begins with the file, and then its journal.
    left = [each.name for suffix in COMPANIONS if (each := beside(file, suffix)).exists()]
    is_beginning = left == [file.name + JOURNAL]
    if left and not (path.exists() and (path.stat().st_size or is_beginning)):
        raise StoreUnavailable(
            f"{path} is missing or empty, and {' and '.join(left)} beside it may hold events. "
            "Put the file back, or move what is left of it away to begin anew."
        )
