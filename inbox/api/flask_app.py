"""The Flask class of the app, and the check that a path has exactly one spelling."""

import re
from collections.abc import Callable
from typing import Any

from flask import Flask, Request, request
from werkzeug.routing import MapAdapter

from inbox.api.problem_types import NOT_FOUND
from inbox.api.problems import ProblemError

# Letters, digits, - . _ ~ and the slash are never encoded. Other characters are, even in names that are refused later.
_NEVER_ENCODED = "2[def]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e"
_CHARACTER = rf"(?:[a-z0-9._~!$&'()*+,;=:@-]|%(?!{_NEVER_ENCODED})[0-9a-f]{{2}})"
_SEGMENT = rf"/(?!\.\.?(?:[/?]|\Z)){_CHARACTER}+"
# A request has no fragment, though gunicorn would silently cut it off.
_CANONICAL = re.compile(rf"(?:/|(?:{_SEGMENT})+)(?:\?[^#]*)?", re.ASCII | re.IGNORECASE)


class InboxApp(Flask):
    """Skips work that no route needs, which saves a tenth of the CPU time of an empty poll."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `func` unchanged: no view is a coroutine. Flask would inspect each function at every request."""
        return func

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Returns an adapter that matches path and method only. Flask would also parse Host and look for WebSockets."""
        if request is None:
            return None
        environ = request.environ
        # WSGI passes UTF-8 bytes as Latin-1 text.
        path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
        scheme, method = environ["wsgi.url_scheme"], environ["REQUEST_METHOD"]
        return MapAdapter(self.url_map, "", environ.get("SCRIPT_NAME", ""), "", scheme, path, method)


def check_path() -> None:
    """Raises ProblemError (404) for another spelling of a path, which could bypass a proxy's protection of /admin.

    To Flask, `//admin`, `/%61dmin` and `http://elsewhere/admin` are all `/admin`.
    """
    environ = request.environ
    path = environ.get("RAW_URI") or environ["PATH_INFO"]
    if not _CANONICAL.fullmatch(path):
        if path.partition("?")[0].endswith("/"):
            raise ProblemError(NOT_FOUND, "Remove the slash at the end of the path.")
        raise ProblemError(NOT_FOUND, "The path must have no empty or dot segments and no needless percent-encoding.")
