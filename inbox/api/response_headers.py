"""The headers of answers, for the description. Whoever has them refers to them by name."""

from typing import Any

from inbox.api.access_log import REQUEST_ID
from inbox.api.examples import CURSOR, EVENT_ID
from inbox.api.examples import REQUEST_ID as REQUEST_ID_EXAMPLE

Refs = dict[str, str]


def _header(description: str, example: Any, *, required: bool = True, **form: Any) -> dict[str, Any]:
    schema = {"type": "string", **form, "examples": [example]}
    return {"description": description, "required": required, "schema": schema}


def _refs(*names: str) -> Refs:
    return {name: name for name in names}


HEADERS = {
    "X-Request-Id": _header("As in the log.", REQUEST_ID_EXAMPLE, pattern=f"^{REQUEST_ID}$"),
    "Location": _header("The path of what is stored.", f"/events/{EVENT_ID}", pattern="^/"),
    "Idempotency-Replayed": _header("Nothing was stored.", True, type="boolean", enum=[True]),
    "Inbox-More": _header("Whether undelivered events remain.", False, type="boolean"),
    "Link": _header(
        "Where there is more: the path of the next page, with all parameters.",
        f'</events?limit=100&cursor={CURSOR}>; rel="next"',
        required=False,
    ),
    "Retry-After": _header("Seconds to wait.", 1, type="integer", minimum=1),
    "WWW-Authenticate": _header("How a key is sent.", 'Bearer realm="Polling Inbox"', pattern="^Bearer "),
    "Accept-Encoding": _header(
        "The only supported content coding. Present if the 415 is about it.", "gzip", required=False
    ),
    "Allow": _header("What the path takes.", "GET, HEAD, OPTIONS, POST"),
    "RateLimit-Policy": _header("Where the tenant is limited: to how much.", '"tenant";q=10;w=1', required=False),
    "RateLimit": _header("Where the tenant is limited: what is left.", '"tenant";r=9;t=1', required=False),
}
EVERYWHERE = _refs("X-Request-Id")
LOCATION = _refs("Location")
REPLAYED = _refs("Idempotency-Replayed")
MORE = _refs("Inbox-More")
NEXT = _refs("Link")
LIMITS = _refs("RateLimit-Policy", "RateLimit")
_OF_STATUS = {
    401: _refs("WWW-Authenticate"),
    405: _refs("Allow"),
    415: _refs("Accept-Encoding") | LIMITS,
    429: _refs("Retry-After") | LIMITS,
    503: _refs("Retry-After") | LIMITS,
}


def of_problem(status: int) -> Refs:
    return EVERYWHERE | _OF_STATUS.get(status, LIMITS)
