"""What counts as JSON here, and how it is kept exact.

Stricter than most parsers: NaN, Infinity, a member name given twice, a lone surrogate and more than 32 levels are
not JSON. Numbers are never computed with, so they stay the text they came as: 1.0, 1e999 and 40 digits survive.
"""

import re
from codecs import utf_8_decode
from collections.abc import Callable, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, NoReturn

import orjson

MAX_DEPTH = 32

_WHITESPACE = re.compile(r"[ \t\r\n]*").match
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*").match
# What decides where a value ends, and what a shorter text of it would not have.
_STRUCTURE = re.compile(rb'\\.|["{}\[\]]|[ \t\r\n]+', re.DOTALL)
# A text of up to so many characters has no more than MAX_DEPTH - 1 levels, since each takes two.
_SHALLOW = 2 * MAX_DEPTH - 1
# A word, a number or an escape that a text ends in begins at most this many characters before its end.
_LONGEST_TOKEN = 16


class NotJSON(ValueError):
    """The text is not JSON as this service takes it; the message says why and quotes nothing of it."""


class NotAnArray(ValueError):
    """The text is no array."""


class ElementTooLarge(ValueError):
    def __init__(self, position: int) -> None:
        super().__init__(f"Element {position} is too large.")
        self.position = position


def parse(body: bytes, max_depth: int = MAX_DEPTH) -> Any:
    """The document in `body`, each number in it an `orjson.Fragment` of its own text."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise NotJSON(_not_utf_8(error.start)) from None
    try:
        document = _DECODER.decode(text)
    except JSONDecodeError as error:
        if not text.strip():
            raise NotJSON("The body is empty.") from None
        raise _not_json(error.lineno, error.colno) from None
    except RecursionError:
        raise NotJSON(_too_deep(max_depth)) from None
    _check(document, text, 0, len(text), max_depth)
    return document


def parse_array(body: bytes, max_element_bytes: int) -> Iterator[Any]:
    """Yields the elements of the array in `body`, each parsed when it is asked for.

    A parsed document takes up to 40 times the memory of its text. Raises NotAnArray, or ElementTooLarge instead of
    parsing an element whose shortest JSON text has more than `max_element_bytes`.
    """
    if len(body) <= max_element_bytes:
        # Together they take no more than one element may, and this is faster.
        document = parse(body)
        if not isinstance(document, list):
            raise NotAnArray
        yield from document
        return
    window = _Window(body, max_element_bytes)
    if window.peek() != "[":
        raise NotAnArray
    window.expect("[")
    if window.peek() != "]":
        position = 0
        yield window.take_value(position)
        while window.take_comma():
            position += 1
            yield window.take_value(position)
    window.expect("]")
    window.expect("")


class _Window:
    """A part of the body as text, which moves along. The text of the whole body can take four times its memory."""

    def __init__(self, body: bytes, size: int) -> None:
        self._body = body
        # Room for one character at least.
        self._size = max(size, 4)
        self._start = 0
        self._text = ""
        self._index = 0
        # The text goes to the end of the body; it has all of the next value.
        self._is_last = self._is_whole = False
        self._has_escapes = False
        self._value_length = 0
        self._move(self._size)

    def peek(self) -> str:
        """Steps over white space and returns the next character; an empty string at the end."""
        while True:
            self._index = _WHITESPACE(self._text, self._index).end()  # type: ignore[union-attr]
            if self._index < len(self._text) or self._is_last:
                return self._text[self._index : self._index + 1]
            self._move(self._size)

    def expect(self, character: str) -> None:
        if self.peek() != character:
            raise self._not_json(self._index)
        self._index += len(character)

    def take_comma(self) -> bool:
        """Steps over a comma, to the next value; returns False if there is none."""
        match = _COMMA(self._text, self._index)
        if match is not None and match.end() < len(self._text):
            self._index = match.end()
            return True
        if self.peek() != ",":
            return False
        self.expect(",")
        self.peek()
        return True

    def take_value(self, position: int) -> Any:
        """Parses the value at the index."""
        # Elements tend to be of one size: one that is likely to be cut off is not tried.
        if self._index and not self._is_whole and len(self._text) - self._index < self._value_length:
            self._move(self._size)
        try:
            document, end = _scan(self._text, self._index)
        except (StopIteration, JSONDecodeError, RecursionError) as error:
            self._refuse_unless_cut_off(error)
            return self._take_value_from_wider_text(position)
        # A number may go on: 1 is what is left of 1.5 and of 1e+5.
        if end > len(self._text) - _LONGEST_TOKEN and not self._is_whole:
            return self._take_value_from_wider_text(position)
        size = end - self._index
        if self._has_escapes or size > _SHALLOW:
            _check(document, self._text, self._index, end, MAX_DEPTH, outer_levels=1)
        self._value_length = size
        self._index = end
        self._is_whole = self._is_last
        return document

    def _refuse_unless_cut_off(self, error: Exception) -> None:
        is_cut_off = False
        match error:
            case JSONDecodeError():
                at = error.pos
                # The place of this one is where the string begins.
                is_cut_off = error.msg.startswith("Unterminated")
            case StopIteration():
                at = error.value
            case _:
                raise NotJSON(_too_deep(MAX_DEPTH)) from None
        if self._is_whole or not (is_cut_off or at >= len(self._text) - _LONGEST_TOKEN):
            raise self._not_json(at) from None

    def _take_value_from_wider_text(self, position: int) -> Any:
        if self._index:
            # The text did not begin with the value. Now it does.
            self._move(self._size)
        else:
            extent = _extent(self._body, self._start, self._size)
            if extent is None:
                raise ElementTooLarge(position)
            self._move(extent)
            self._is_whole = True
        return self.take_value(position)

    def _not_json(self, index: int) -> NotJSON:
        at = self._start + len(self._text[:index].encode())
        line = self._body.count(b"\n", 0, at) + 1
        column = len(self._body[self._body.rfind(b"\n", 0, at) + 1 : at].decode()) + 1
        return _not_json(line, column)

    def _move(self, size: int) -> None:
        """Lets the text begin at the index."""
        self._start += len(self._text[: self._index].encode())
        self._index = 0
        self._is_last = self._is_whole = self._start + size >= len(self._body)
        part = self._body[self._start : self._start + size]
        try:
            self._text, _ = utf_8_decode(part, "strict", self._is_last)
        except UnicodeDecodeError as error:
            raise NotJSON(_not_utf_8(self._start + error.start)) from None
        self._has_escapes = "\\u" in self._text


def _extent(body: bytes, start: int, max_bytes: int) -> int | None:
    """Returns how many bytes hold the value at `start`; None if its shortest text has more than `max_bytes`."""
    depth, spared, is_in_string = 0, 0, False
    for match in _STRUCTURE.finditer(body, start):
        token = match[0]
        if token[:1] == b"\\":
            # \u0041 is A, \/ is /.
            spared += 5 if token == b"\\u" else 1
        elif token == b'"':
            is_in_string = not is_in_string
        elif not is_in_string:
            if token in (b"{", b"["):
                depth += 1
            elif token in (b"}", b"]"):
                depth -= 1
            else:
                spared += len(token)
        size = match.end() - start
        if size - spared > max_bytes:
            return None
        if depth <= 0 and not is_in_string:
            return size
    size = len(body) - start
    return size if size - spared <= max_bytes else None


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


def _not_utf_8(position: int) -> str:
    return f"The body is not UTF-8 (byte {position})."


def _not_json(line: int, column: int) -> NotJSON:
    return NotJSON(f"It is not JSON from line {line}, column {column} on.")


def _check(document: Any, text: str, start: int, end: int, max_depth: int, outer_levels: int = 0) -> None:
    """Refuses what the decoder lets through. The document is that of `text` from `start` to `end`."""
    levels = max_depth - outer_levels
    # The opening brackets bound the depth from above, which settles nearly every body with two quick counts.
    if text.count("{", start, end) + text.count("[", start, end) > levels and _is_deeper(document, levels):
        raise NotJSON(_too_deep(max_depth))
    if text.find("\\u", start, end) >= 0:
        _refuse_lone_surrogates(document)


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
_scan: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]
