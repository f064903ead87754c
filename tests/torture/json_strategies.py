"""Hypothesis strategies for JSON text with every form of number, and every accepted depth and size."""

import json
import random
from typing import NamedTuple

from hypothesis import strategies as st

from inbox.domain.exact_json import MAX_DEPTH
from tests.json_documents import TEXT

# DynamoDB stores payloads up to this size as a map, larger ones as compressed bytes.
_MAX_MAP_BYTES = 1024
_MAX_BYTES = 256 * 1024 - 100
# The levels of the envelope and the batch around a payload.
_MAX_LEVELS_AROUND = 2


class Document(NamedTuple):
    """A payload. `alone` is True if it can only be sent without envelope and batch."""

    text: str
    alone: bool = False


_ZEROS = ["0", "-0", "0.0", "-0.0", "0e0", "0E-7"]
_FORMS = ["1.0", "1.00", "0.1", "1E+2", "1e2", "1e-7", "1E400", "-1e-400", "123456789.123456789e-30"]
_BEYOND_DOUBLES = [
    "9007199254740993",
    "1234567890" * 4,
    f"-0.{'0' * 40}1",
    "9" * 38,
    "9" * 39,
    "1e125",
    "1e126",
    "1e-130",
    "1e-131",
]
_EDGE_NUMBERS = _ZEROS + _FORMS + _BEYOND_DOUBLES
_DIGITS = st.text("0123456789", min_size=1, max_size=45)
_NUMBERS = st.one_of(
    st.sampled_from(_EDGE_NUMBERS),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.builds(
        lambda sign, whole, fraction, e, power: f"{sign}{whole.lstrip('0') or '0'}{fraction}{e}{power}",
        st.sampled_from(["", "-"]),
        _DIGITS,
        st.just("") | _DIGITS.map(".{}".format),
        st.sampled_from(["e", "E", "e-", "E+"]),
        st.integers(0, 999),
    ),
)
# Control characters, unusual line ends, joiners, direction overrides, noncharacters, and characters beyond U+FFFF.
_UNUSUAL = st.text('\0\1\b\t\n\r\x1f"\\/\x7f\x85\u00e9e\u0301\u200d\u202e\u2028\u2029\ufeff\ufffe\U0001f468\U0010ffff')
_STRINGS = st.builds(lambda text, as_ascii: json.dumps(text, ensure_ascii=as_ascii), TEXT | _UNUSUAL, st.booleans())
_LEAVES = _NUMBERS | _STRINGS | st.sampled_from(["null", "true", "false", "[]", "{}", '""'])


def _format_array(items: list[str]) -> str:
    return f"[{','.join(items)}]"


def _format_object(members: dict[str, str]) -> str:
    return f"{{{','.join(f'{json.dumps(name)}:{value}' for name, value in members.items())}}}"


def _objects(values: st.SearchStrategy[str], max_members: int) -> st.SearchStrategy[str]:
    return st.dictionaries(TEXT | _UNUSUAL, values, max_size=max_members).map(_format_object)


_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4).map(_format_array) | _objects(inner, 4), max_leaves=12
)


def _nest(leaf: str, arrays: list[bool]) -> Document:
    for is_array in arrays:
        leaf = f"[{leaf}]" if is_array else f'{{"n":{leaf}}}'
    levels = len(arrays) + 1
    return Document(f'{{"deep":{leaf}}}', alone=levels > MAX_DEPTH - _MAX_LEVELS_AROUND)


def _make_document(size_bytes: int, text: str, seed: int | None) -> Document:
    """Returns a document of about `size_bytes`. With a seed, it is random and cannot be compressed."""
    if seed is None:
        piece = json.dumps(text)[1:-1] or "x"
        return Document(f'{{"long":"{piece * (size_bytes // len(piece))}"}}', alone=size_bytes > 10 * _MAX_MAP_BYTES)
    noise = random.Random(seed).randbytes(size_bytes // 2).hex()
    return Document(f'{{"noise":"{noise}"}}', alone=size_bytes > 10 * _MAX_MAP_BYTES)


_SEEDS = st.none() | st.integers(0, 1000)
_ORDINARY = _objects(_VALUES, 5).map(Document)
_LEVELS = st.integers(0, MAX_DEPTH - 1).flatmap(
    lambda levels: st.lists(st.booleans(), min_size=levels, max_size=levels)
)
_DEEP = st.builds(_nest, _NUMBERS | _STRINGS, _LEVELS)
_AT_THE_MAP_LIMIT = st.builds(_make_document, st.integers(_MAX_MAP_BYTES - 40, _MAX_MAP_BYTES + 40), TEXT, _SEEDS)
_LARGE = st.builds(_make_document, st.integers(2 * _MAX_MAP_BYTES, _MAX_BYTES), TEXT, _SEEDS)
# Of a hundred documents, 1 is large, 5 are close to the limit of a map, and 6 are deep.
_RARE_DOCUMENTS = {0: _LARGE} | dict.fromkeys(range(1, 6), _AT_THE_MAP_LIMIT) | dict.fromkeys(range(6, 12), _DEEP)
DOCUMENTS = st.integers(0, 99).flatmap(lambda drawn: _RARE_DOCUMENTS.get(drawn, _ORDINARY))
# Known edge cases, which every run includes.
EDGES = [
    *(Document(f'{{"n":{number}}}') for number in _EDGE_NUMBERS),
    *(_nest("1.5", [False] * levels) for levels in range(MAX_DEPTH - 5, MAX_DEPTH)),
    *(_make_document(_MAX_MAP_BYTES + difference, "x", None) for difference in range(-14, -6)),
    _make_document(_MAX_BYTES, "x", 1),
]
