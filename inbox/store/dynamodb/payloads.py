"""Payloads in DynamoDB: a native map where that is exact, compressed JSON text otherwise."""

import re
import zlib
from collections.abc import Mapping
from json import JSONDecoder
from typing import Any

from inbox.domain import exact_json

_LARGEST_MAP_BYTES = 1024
# DynamoDB takes 32 levels, and the item itself is the first.
_DEEPEST_MAP = 31
_MAX_DIGITS = 38
# DynamoDB computes with numbers and writes them in one way only: no exponent, no zero that could be left out.
_EXACT_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")


class _NotExact(Exception):
    """DynamoDB would give something else back."""


def to_attribute(payload: bytes) -> dict[str, Any]:
    """Returns the attribute with a native map as finished JSON: its tree takes 100 times the memory of the payload."""
    if len(payload) <= _LARGEST_MAP_BYTES:
        try:
            native = _native(_DECODER.decode(payload.decode()), 1)
        except _NotExact:
            pass
        else:
            return {"M": exact_json.splice(exact_json.dump(native["M"]))}
    return {"B": zlib.compress(payload)}


def from_attribute(attribute: Mapping[str, Any]) -> bytes:
    if "B" in attribute:
        return zlib.decompress(attribute["B"])
    return exact_json.dump(_plain(attribute))


class _Number(str):
    """The text of a number, as it stands in the JSON."""

    __slots__ = ()


def _exact(text: str) -> _Number:
    digits = len(text) - text.count(".") - text.count("-")
    if digits > _MAX_DIGITS or text == "-0" or not _EXACT_NUMBER.fullmatch(text):
        raise _NotExact
    return _Number(text)


def _native(value: Any, level: int) -> dict[str, Any]:
    if isinstance(value, _Number):
        return {"N": str(value)}
    if isinstance(value, str):
        return {"S": value}
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    # DynamoDB has no member without a name.
    if level > _DEEPEST_MAP or (isinstance(value, dict) and "" in value):
        raise _NotExact
    if isinstance(value, dict):
        return {"M": {name: _native(member, level + 1) for name, member in value.items()}}
    return {"L": [_native(element, level + 1) for element in value]}


def _plain(attribute: Mapping[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    match kind:
        case "M":
            return {name: _plain(member) for name, member in value.items()}
        case "L":
            return [_plain(element) for element in value]
        case "N":
            return exact_json.splice(value)
        case "NULL":
            return None
        case _:
            return value


_DECODER = JSONDecoder(parse_float=_exact, parse_int=_exact)
