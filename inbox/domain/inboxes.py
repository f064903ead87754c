"""Inboxes, and which events each of them receives. Pure."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

MAX_INBOXES = 50
INBOX_NAME = "[a-z0-9][a-z0-9-]{0,62}"
INBOX_NAME_RULE = "1 to 63 characters of a-z, 0-9 and -, starting with a letter or digit"


@dataclass(frozen=True, slots=True)
class Inbox:
    """`event_types` are patterns in which `*` matches any characters; None matches every event.

    Only `default` can be disabled.
    """

    name: str
    event_types: tuple[str, ...] | None
    created_at_ms: int
    enabled: bool = True

    def receives(self, event_type: str | None) -> bool:
        if self.event_types is None:
            return True
        # A pattern contains none of the other wildcards of fnmatch.
        return event_type is not None and any(fnmatchcase(event_type, pattern) for pattern in self.event_types)


def is_inbox_name(text: str) -> bool:
    return re.fullmatch(INBOX_NAME, text) is not None
