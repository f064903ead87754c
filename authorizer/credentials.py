"""Where a request carries its key: Bearer, X-API-Key, or either half of HTTP Basic."""

import base64
import re
from collections.abc import Iterator

from authorizer import apikey

# Blanks as HTTP has them: Python knows more, and a proxy would see no scheme before those.
_SCHEME_AND_VALUE = re.compile(r"[ \t]*([A-Za-z]+)[ \t]+(.*)", re.DOTALL)
_NO_KEY_BUT_A_CLAIM = f"{apikey.PREFIX}?"


def find_key(authorization: str | None, x_api_key: str | None) -> str | None:
    """The one key in these headers.

    None where there is none, and where anything beside it claims to be one: picking one of two would let a proxy and
    this service disagree about who is calling. What claims nothing is let be, such as a password for that proxy.
    """
    claims = {text for text in _texts(authorization, x_api_key) if apikey.PREFIX in text}
    claim = claims.pop() if len(claims) == 1 else _NO_KEY_BUT_A_CLAIM
    return claim if apikey.looks_like_key(claim) else None


def find_key_in(value: str | None) -> str | None:
    """The key in a header that may be one or the other."""
    return find_key(value, None) or find_key(None, value)


def _texts(authorization: str | None, x_api_key: str | None) -> Iterator[str]:
    if x_api_key:
        yield x_api_key.strip(" \t")
    if not authorization:
        return
    scheme, value = _read(authorization)
    if _came_twice(authorization):
        yield _NO_KEY_BUT_A_CLAIM
    elif scheme == "bearer":
        yield value
    elif scheme == "basic":
        yield from _basic_halves(value)
    elif apikey.PREFIX in authorization:
        yield _NO_KEY_BUT_A_CLAIM


def _read(authorization: str) -> tuple[str, str]:
    """The scheme in lower case, and what follows it."""
    found = _SCHEME_AND_VALUE.fullmatch(authorization)
    return (found[1].lower(), found[2].strip(" \t")) if found else ("", "")


def _came_twice(authorization: str) -> bool:
    """Whether a server joined two of them with a comma. Each could hold a key, and in base64 nobody sees it."""
    parts = authorization.split(",")
    return len(parts) > 1 and any(_read(part)[0] in ("bearer", "basic") for part in parts)


def _basic_halves(encoded: str) -> Iterator[str]:
    try:
        # Latin-1 reads any bytes, and a key is ASCII whatever stands beside it.
        user, _, password = base64.b64decode(encoded, validate=True).decode("latin-1").partition(":")
    except ValueError:
        return
    yield user
    yield password
