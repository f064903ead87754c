"""One spelling for each path: what a proxy sees, which may protect /admin, is what is served."""

import re

from flask import request

from inbox.api.problem_types import NOT_FOUND
from inbox.api.problems import Refusal

# Letters, digits, - . _ ~ and the slash are never encoded; what has to be may stand in a name that is refused later.
_NEVER_ENCODED = "2[def]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e"
_CHARACTER = rf"(?:[a-z0-9._~!$&'()*+,;=:@-]|%(?!{_NEVER_ENCODED})[0-9a-f]{{2}})"
_SEGMENT = rf"/(?!\.\.?(?:[/?]|\Z)){_CHARACTER}+"
# A fragment is no part of a request, though gunicorn would cut it off in silence.
_PLAIN = re.compile(rf"(?:/|(?:{_SEGMENT})+)(?:\?[^#]*)?", re.ASCII | re.IGNORECASE)


def refuse_other_spellings() -> None:
    """To Flask `//admin`, `/%61dmin` and `http://elsewhere/admin` are all the same."""
    environ = request.environ
    if not _PLAIN.fullmatch(environ.get("RAW_URI") or environ["PATH_INFO"]):
        raise Refusal(NOT_FOUND, "Not written as a path is here: no empty or dot segments, nothing encoded needlessly.")
