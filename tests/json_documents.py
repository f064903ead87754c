"""Hypothesis strategies for JSON documents, and a parser for which 1, 1.0 and 1e0 differ."""

import json
from typing import Any

from hypothesis import strategies as st

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=5)


def exact(text: bytes | str) -> Any:
    """Returns the parsed document, with each number as its text."""
    return json.loads(text, parse_float=lambda number: ("number", number), parse_int=lambda number: ("number", number))
