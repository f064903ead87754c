"""Where a request carries its key: Bearer, X-API-Key, or either half of HTTP Basic."""

import base64
from collections.abc import Iterator

from authorizer import apikey


def find_key(authorization: str | None, x_api_key: str | None) -> str | None:
    """The one key in these headers, going by its shape.

    None where there is no such key, and where two different ones contradict each other: picking one would let
    a proxy and this service disagree about who is calling.
    """
    found = {text for text in _candidates(authorization, x_api_key) if apikey.looks_like_key(text)}
    return found.pop() if len(found) == 1 else None


def _candidates(authorization: str | None, x_api_key: str | None) -> Iterator[str]:
    if x_api_key:
        yield x_api_key.strip()
    match (authorization or "").split(maxsplit=1):
        case [scheme, value] if scheme.lower() == "bearer":
            yield value.strip()
        case [scheme, value] if scheme.lower() == "basic":
            yield from _basic_halves(value.strip())


def _basic_halves(encoded: str) -> Iterator[str]:
    try:
        # Latin-1 reads any bytes, and a key is ASCII whatever stands beside it.
        user, _, password = base64.b64decode(encoded, validate=True).decode("latin-1").partition(":")
    except ValueError:
        return
    yield user
    yield password
