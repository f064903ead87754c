"""Parsing and writing JSON without changing it. Pure.

Stricter than most parsers: it refuses NaN, Infinity, duplicate member names, unpaired surrogates and more than 32
levels. Numbers keep their text: 1.0, 1e999 and 40 digits survive.
"""

import re
from collections.abc import Iterator
from itertools import count
from json import JSONDecodeError, JSONDecoder
from typing import Any, NoReturn

import orjson

MAX_DEPTH = 32

# Most elements of an array are shorter, and a short part of the text is quick to copy.
_FIRST_CHARS = 65_536
# If a text is cut off within a word, a number or an escape, the decoder reports an error at most this far from its end.
_LONGEST_TOKEN = 16
# At the end of a cut-off text the decoder reads `1e+` as the number 1. A number counts only if enough text follows.
_LOOKAHEAD = 3
_space = re.compile(r"[ \t\r\n]*").match


class NotJSON(ValueError):
    """The text is not acceptable JSON. The message gives the reason and quotes none of the text."""


class NotAnArray(ValueError):
    pass


class ElementTooLarge(ValueError):
    def __init__(self, position: int) -> None:
        super().__init__(f"Element {position} is too large.")
        self.position = position


def parse(body: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """Returns the document in `body`, each number in it an `orjson.Fragment` of its own text."""
    return _parse_text(_decode(body), max_depth)


def parse_array(body: bytes, max_element_chars: int) -> Iterator[Any]:
    """Yields the elements of the array in `body`, each parsed when it is asked for.

    A parsed document takes up to 40 times the memory of its text, so a large array is never parsed as a whole. Raises
    NotAnArray, or ElementTooLarge if the shortest text of an element has more than `max_element_chars` characters.
    """
    text = _decode(body)
    if len(text) <= max_element_chars:
        document = _parse_text(text, MAX_DEPTH)
        if not isinstance(document, list):
            raise NotAnArray
        yield from document
        return
    index = _skip_space(text, 0)
    if not text.startswith("[", index):
        raise NotAnArray
    for position in count():
        index = _skip_space(text, index + 1)
        if position == 0 and text.startswith("]", index):
            break
        element, length = _parse_element(text, index, max_element_chars, position)
        yield element
        index = _skip_space(text, index + length)
        if not text.startswith(",", index):
            break
    if not text.startswith("]", index):
        raise _not_json(text, index)
    end = _skip_space(text, index + 1)
    if end < len(text):
        raise _not_json(text, end)


def _parse_element(text: str, start: int, max_chars: int, position: int) -> tuple[Any, int]:
    """Returns the value that begins at `start`, and the length of its text.

    The decoder only sees a part of the text, which grows until it holds the value or more than `max_chars` allows.
    """
    size = min(_FIRST_CHARS, max_chars)
    while True:
        part = text[start : start + size]
        is_cut_off = start + size < len(text)
        try:
            element, length = _DECODER.raw_decode(part)
        except JSONDecodeError as error:
            is_at_end = error.pos > len(part) - _LONGEST_TOKEN or error.msg.startswith("Unterminated")
            if not (is_cut_off and is_at_end):
                raise _not_json(text, start + error.pos) from None
        except RecursionError:
            raise NotJSON(_too_deep(MAX_DEPTH)) from None
        else:
            if not (is_cut_off and length > len(part) - _LOOKAHEAD):
                _check(element, part[:length], MAX_DEPTH, outer_levels=1)
                return element, length
        longest = max_chars + _spared_chars(text, start, start + 2 * size) + _LOOKAHEAD
        if size >= longest:
            raise ElementTooLarge(position)
        size = min(max(2 * size, max_chars), longest)


def _spared_chars(text: str, start: int, end: int) -> int:
    """Returns an upper bound of the characters that white space and escapes such as \\u0041 and \\/ add."""
    space = sum(text.count(character, start, end) for character in " \t\r\n")
    return space + 5 * text.count("\\u", start, end) + text.count("\\/", start, end)


def _parse_text(text: str, max_depth: int) -> Any:
    try:
        document = _DECODER.decode(text)
    except JSONDecodeError as error:
        if not text.strip():
            raise NotJSON("The body is empty.") from None
        raise _not_json(text, error.pos) from None
    except RecursionError:
        raise NotJSON(_too_deep(max_depth)) from None
    _check(document, text, max_depth)
    return document


def _decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise NotJSON(f"The body is not valid UTF-8 at byte {error.start}.") from None


def _skip_space(text: str, index: int) -> int:
    """Returns the index of the next character that is no white space, or the length of the text."""
    return _space(text, index).end()  # type: ignore[union-attr]


def dump(document: Any) -> bytes:
    """Returns the shortest JSON text of a document, with members in their order."""
    return orjson.dumps(document)


def dump_canonical(document: Any) -> bytes:
    """Returns the same text for documents that differ only in white space and in the order of members."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def splice(text: bytes | str) -> orjson.Fragment:
    """Returns JSON text that `dump` inserts into a document unchanged."""
    return orjson.Fragment(text)


def whole_number(value: Any) -> int | None:
    """Returns a parsed number as int if it has no fraction or exponent and up to 100 digits, otherwise None."""
    if not isinstance(value, orjson.Fragment):
        return None
    text = orjson.dumps(value)
    return int(text) if re.fullmatch(b"0|-?[1-9][0-9]{0,99}", text) else None


def _not_json(text: str, index: int) -> NotJSON:
    error = JSONDecodeError("", text, index)
    return NotJSON(f"Invalid JSON at line {error.lineno}, column {error.colno}.")


def _check(document: Any, text: str, max_depth: int, outer_levels: int = 0) -> None:
    """Raises NotJSON for documents that the decoder accepts and this service does not. `text` is the document's."""
    levels = max_depth - outer_levels
    # Depth cannot exceed the number of opening brackets. Two quick counts are enough for nearly every body.
    if text.count("{") + text.count("[") > levels and _is_deeper(document, levels):
        raise NotJSON(_too_deep(max_depth))
    if "\\u" in text:
        try:
            orjson.dumps(document)
        except TypeError:
            raise NotJSON("A string contains an unpaired surrogate.") from None


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


def _unique_members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(members)
    if len(document) != len(members):
        raise NotJSON("An object has two members with the same name.")
    return document


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSON(f"{name} is not JSON.")


_DECODER = JSONDecoder(
    object_pairs_hook=_unique_members,
    parse_float=splice,
    parse_int=splice,
    parse_constant=_refuse_constant,
)
