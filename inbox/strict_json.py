"""What counts as JSON here, and how it is kept exact.

Stricter than most parsers: NaN, Infinity, a member name given twice, a lone surrogate and more than 32 levels are
not JSON. Numbers are never computed with, so they stay the text they came as: 1.0, 1e999 and 40 digits survive.
"""

import re
from json import JSONDecodeError, JSONDecoder
from typing import Any, NoReturn

import orjson

MAX_DEPTH = 32


class NotJSON(ValueError):
    """The text is not JSON as this service takes it; the message says why and quotes nothing of it."""


def parse(body: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """The document in `body`, each number in it an `orjson.Fragment` of its own text."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise NotJSON(f"The body is not UTF-8 (byte {error.start}).") from None
    try:
        document = _DECODER.decode(text)
    except JSONDecodeError as error:
        if not text.strip():
            raise NotJSON("The body is empty.") from None
        raise NotJSON(f"It is not JSON from line {error.lineno}, column {error.colno} on.") from None
    except RecursionError:
        raise NotJSON(_too_deep(max_depth)) from None
    # The opening brackets bound the depth from above, which settles nearly every body with two quick counts.
    if text.count("{") + text.count("[") > max_depth and _is_deeper(document, max_depth):
        raise NotJSON(_too_deep(max_depth))
    if "\\u" in text:
        _refuse_lone_surrogates(document)
    return document


def dump(document: Any) -> bytes:
    """The shortest JSON text of a document, members in the order they came in."""
    return orjson.dumps(document)


def dump_canonical(document: Any) -> bytes:
    """The same text for documents that differ in the order of members and in white space only."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def splice(text: bytes | str) -> orjson.Fragment:
    """A piece of finished JSON, to be put into a document as it is."""
    return orjson.Fragment(text)


def whole_number(value: Any) -> int | None:
    """The number in a parsed document, where it has up to 15 digits and nothing else; otherwise None."""
    if not isinstance(value, orjson.Fragment):
        return None
    text = orjson.dumps(value)
    return int(text) if re.fullmatch(b"[0-9]{1,15}", text) else None


def _too_deep(levels: int) -> str:
    return f"The body is nested more than {levels} levels deep."


def _is_deeper(document: Any, levels: int) -> bool:
    layer = [document] if isinstance(document, dict | list) else []
    for _ in range(levels):
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(layer)


def _refuse_lone_surrogates(document: Any) -> None:
    try:
        orjson.dumps(document)
    except TypeError:
        raise NotJSON("A string holds half of a surrogate pair.") from None


def _members_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(members)
    if len(document) != len(members):
        raise NotJSON("An object has two members of the same name.")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSON(f"{name} is not JSON.")


_DECODER = JSONDecoder(
    object_pairs_hook=_members_once,
    parse_float=splice,
    parse_int=splice,
    parse_constant=_refuse_constant,
)
