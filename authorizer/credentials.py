"""Finds the API key in a request's headers: Bearer, X-API-Key, or either half of HTTP Basic."""

import base64
import re
from collections.abc import Iterator

from authorizer import apikey

# Spaces and tabs only, as in HTTP. Python's \s matches more, and a proxy would not see a scheme before those.
_SCHEME_AND_VALUE = re.compile(r"[ \t]*([A-Za-z]+)[ \t]+(.*)", re.DOTALL)
_INVALID_KEY = f"{apikey.PREFIX}?"


def find_key_in_headers(authorization: str | None, x_api_key: str | None) -> str | None:
    """Returns the only key in these headers, or None if there is no key, a malformed one, or several different ones.

    Of several keys, a proxy and this service might pick different ones. Credentials without the prefix of a key are
    ignored, such as a password for that proxy.
    """
    candidates = {text for text in _candidates(authorization, x_api_key) if apikey.PREFIX in text}
    candidate = candidates.pop() if len(candidates) == 1 else _INVALID_KEY
    return candidate if apikey.looks_like_key(candidate) else None


def find_key_in_header(value: str | None) -> str | None:
    """Returns the key in the value of a header that may be Authorization or X-API-Key, or None."""
    return find_key_in_headers(value, None) or find_key_in_headers(None, value)


def _candidates(authorization: str | None, x_api_key: str | None) -> Iterator[str]:
    if x_api_key:
        yield x_api_key.strip(" \t")
    if not authorization:
        return
    scheme, value = _read(authorization)
    if _is_repeated(authorization):
        yield _INVALID_KEY
    elif scheme == "bearer":
        yield value
    elif scheme == "basic":
        yield from _basic_halves(value)
    elif apikey.PREFIX in authorization:
        yield _INVALID_KEY


def _read(authorization: str) -> tuple[str, str]:
    """Returns the scheme in lower case and the rest."""
    found = _SCHEME_AND_VALUE.fullmatch(authorization)
    return (found[1].lower(), found[2].strip(" \t")) if found else ("", "")


def _is_repeated(authorization: str) -> bool:
    """Returns True if a server has joined several headers with commas. Base64 may hide a key in each."""
    parts = authorization.split(",")
    return len(parts) > 1 and any(_read(part)[0] in ("bearer", "basic") for part in parts)


def _basic_halves(encoded: str) -> Iterator[str]:
    try:
        # Latin-1 decodes any bytes, and a key is ASCII whatever the other half is.
        user, _, password = base64.b64decode(encoded, validate=True).decode("latin-1").partition(":")
    except ValueError:
        return
    yield user
    yield password
