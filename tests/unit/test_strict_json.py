"""What counts as JSON here, and that it stays exact."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox.strict_json import MAX_DEPTH, NotJSON, dump, dump_canonical, parse, whole_number
from tests.json_documents import VALUES, exact


@given(VALUES, st.booleans())
def test_what_goes_in_comes_out(document: Any, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, indent=1).encode()
    assert exact(dump(parse(text))) == exact(text)


@pytest.mark.parametrize(
    "number",
    [
        "1.0",
        "-0",
        "-0.0",
        "1e999",
        "1E+2",
        "0.1000",
        "123456789012345678901234567890",
        "0." + "1" * 50,
        "9" * 5000,
        "5e-324",
    ],
)
def test_a_number_stays_the_text_it_came_as(number: str) -> None:
    assert dump(parse(f'{{"n": [{number}]}}'.encode())) == f'{{"n":[{number}]}}'.encode()
    assert Decimal(number) == Decimal(dump(parse(number.encode())).decode())


def test_members_keep_their_order_and_the_canonical_form_sorts_them() -> None:
    document = parse(b'{"b": 1, "a": {"d": 2, "c": 3}}')
    assert dump(document) == b'{"b":1,"a":{"d":2,"c":3}}'
    assert dump_canonical(document) == b'{"a":{"c":3,"d":2},"b":1}'


def test_a_surrogate_pair_is_one_character() -> None:
    assert dump(parse(b'"\\ud83c\\udf89"')) == '"🎉"'.encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"nul",
        b"[1,]",
        b'{"a":1,}',
        b"{a:1}",
        b"'a'",
        b"+1",
        b".5",
        b"1.",
        b"01",
        b"0x1",
        b"NaN",
        b"[Infinity]",
        b'{"a":-Infinity}',
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":1}',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'{"\\ud800":1}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\n"',
        b'"\\x"',
        b"// comment\n1",
        b"1 2",
        b"\xef\xbb\xbf1",
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_what_is_not_json_is_refused(text: bytes) -> None:
    with pytest.raises(NotJSON):
        parse(text)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_32_levels_are_the_most(opening: bytes, closing: bytes) -> None:
    parse(opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH)
    with pytest.raises(NotJSON, match="32 levels"):
        parse(opening * (MAX_DEPTH + 1) + b"1" + closing * (MAX_DEPTH + 1))


def test_brackets_in_strings_and_side_by_side_make_no_depth() -> None:
    for text in (b'["' + b"[{" * 50 + b'","\\"' + b"[" * 50 + b'"]', b"[" + b"[],{}," * 100 + b"1]"):
        assert dump(parse(text)) == text


def test_the_reason_quotes_nothing_of_the_text() -> None:
    for text in (b'{"secret": nope}', b'{"secret": 1, "secret": 2}', b'"secret\\ud800"', b'"secret'):
        with pytest.raises(NotJSON) as refused:
            parse(text)
        assert "secret" not in str(refused.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_refused(text: bytes) -> None:
    try:
        document = parse(text)
    except NotJSON:
        return
    assert exact(dump(document)) == exact(text)


@pytest.mark.parametrize(("text", "number"), [(b"0", 0), (b"43200", 43200), (b"999999999999999", 999999999999999)])
def test_a_whole_number_can_be_read(text: bytes, number: int) -> None:
    assert whole_number(parse(text)) == number


@pytest.mark.parametrize("text", [b"-1", b"1.0", b"1e3", b'"1"', b"true", b"null", b"[1]", b"1000000000000000"])
def test_what_is_no_whole_number_is_none(text: bytes) -> None:
    assert whole_number(parse(text)) is None
