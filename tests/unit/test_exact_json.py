"""Parsing and writing JSON without changing it."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox.domain import exact_json
from inbox.domain.exact_json import (
    MAX_DEPTH,
    ElementTooLarge,
    NotAnArray,
    NotJSON,
    dump,
    dump_canonical,
    parse,
    parse_array,
    whole_number,
)
from tests.json_documents import VALUES, exact


@given(VALUES, st.booleans())
def test_dump_of_a_parsed_document_equals_the_document(document: Any, ascii_only: bool) -> None:
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
def test_number_keeps_its_text(number: str) -> None:
    assert dump(parse(f'{{"n": [{number}]}}'.encode())) == f'{{"n":[{number}]}}'.encode()
    assert Decimal(number) == Decimal(dump(parse(number.encode())).decode())


def test_only_the_canonical_form_sorts_members() -> None:
    document = parse(b'{"b": 1, "a": {"d": 2, "c": 3}}')
    assert dump(document) == b'{"b":1,"a":{"d":2,"c":3}}'
    assert dump_canonical(document) == b'{"a":{"c":3,"d":2},"b":1}'


def test_surrogate_pair_is_one_character() -> None:
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
def test_invalid_json_is_refused(text: bytes) -> None:
    with pytest.raises(NotJSON):
        parse(text)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_documents_have_up_to_32_levels(opening: bytes, closing: bytes) -> None:
    parse(opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH)
    with pytest.raises(NotJSON, match="32 levels"):
        parse(opening * (MAX_DEPTH + 1) + b"1" + closing * (MAX_DEPTH + 1))


def test_brackets_in_strings_and_siblings_add_no_depth() -> None:
    for text in (b'["' + b"[{" * 50 + b'","\\"' + b"[" * 50 + b'"]', b"[" + b"[],{}," * 100 + b"1]"):
        assert dump(parse(text)) == text


def test_error_does_not_quote_the_text() -> None:
    for text in (b'{"secret": nope}', b'{"secret": 1, "secret": 2}', b'"secret\\ud800"', b'"secret'):
        with pytest.raises(NotJSON) as refused:
            parse(text)
        assert "secret" not in str(refused.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_exactly_or_refused(text: bytes) -> None:
    try:
        document = parse(text)
    except NotJSON:
        return
    assert exact(dump(document)) == exact(text)


@pytest.mark.parametrize(("text", "number"), [(b"0", 0), (b"-1", -1), (b"43200", 43200), (b"9" * 100, 10**100 - 1)])
def test_whole_number_is_read(text: bytes, number: int) -> None:
    assert whole_number(parse(text)) == number


@pytest.mark.parametrize("text", [b"-0", b"1.0", b"1e3", b'"1"', b"true", b"null", b"[1]", b"9" * 101])
def test_other_values_are_not_whole_numbers(text: bytes) -> None:
    assert whole_number(parse(text)) is None


def parse_elements(text: bytes, max_element_bytes: int) -> Any:
    """Returns the elements as text, or the error. Parses one element at a time."""
    try:
        return list(map(dump, parse_array(text, max_element_bytes)))
    except NotJSON as error:
        return str(error)
    except NotAnArray:
        return NotAnArray
    except ElementTooLarge:
        return ElementTooLarge


def elements_of_parsed(text: bytes) -> Any:
    """Returns the elements as text, or the error. Parses the whole text first."""
    try:
        document = parse(text)
    except NotJSON as error:
        return str(error)
    return list(map(dump, document)) if isinstance(document, list) else NotAnArray


class TestArray:
    @given(st.lists(VALUES, max_size=5), st.booleans(), st.sampled_from([None, 1]), st.integers(1, 300))
    def test_elements_equal_those_of_the_parsed_array(
        self, document: list[Any], ascii_only: bool, indent: int | None, max_element_bytes: int
    ) -> None:
        text = json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode()

        found = parse_elements(text, max_element_bytes)
        if found is ElementTooLarge:
            assert max(map(len, elements_of_parsed(text))) > max_element_bytes
        else:
            assert found == elements_of_parsed(text)

    @given(st.lists(VALUES, min_size=1, max_size=5), st.data(), st.integers(4, 300))
    def test_damaged_array_has_the_error_of_the_parsed_text(
        self, document: list[Any], data: st.DataObject, max_element_bytes: int
    ) -> None:
        text = json.dumps(document, ensure_ascii=False).encode()
        index = data.draw(st.integers(1, len(text)))
        text = text[:index] + data.draw(st.binary(max_size=2)) + text[data.draw(st.integers(index, len(text))) :]

        found = parse_elements(text, max_element_bytes)
        if found is not ElementTooLarge:
            assert found == elements_of_parsed(text)

    @pytest.mark.parametrize("value", [b"1", b"{}", b"[]", b'"a"', b'{"a":1}', b'"\\n"'])
    @pytest.mark.parametrize("end", [b"]}]", b"]}", b"", b"]}, nonsense]"])
    def test_large_element_is_refused_before_it_is_parsed(
        self, value: bytes, end: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parsed_lengths: list[int] = []
        decode = exact_json._DECODER.raw_decode

        def decode_and_record(text: str) -> tuple[Any, int]:
            parsed_lengths.append(len(text))
            return decode(text)

        monkeypatch.setattr(exact_json._DECODER, "raw_decode", decode_and_record)
        text = b'[{"n":1}, {"a":[' + b",".join([value] * 5_000) + end

        with pytest.raises(ElementTooLarge) as refused:
            list(parse_array(text, 2_000))
        assert refused.value.position == 1
        assert max(parsed_lengths) <= 2_000 + exact_json._LOOKAHEAD

    @pytest.mark.parametrize("filler", [b" ", b"\n\t", b"\r\n"])
    def test_white_space_and_escapes_do_not_count(self, filler: bytes) -> None:
        spaced = b'{"a":[' + (b"1," + filler * 20) * 100 + b"1]}"
        escaped = b'{"a":"' + b"\\u0041" * 400 + b'"}'
        text = b"[" + filler.join([spaced, b",", escaped, b",", spaced]) + b"]"
        assert parse_elements(text, 420) == elements_of_parsed(text)
        assert parse_elements(text, 200) is ElementTooLarge

    def test_array_counts_as_a_level(self) -> None:
        for levels in (MAX_DEPTH - 1, MAX_DEPTH):
            text = b"[1, " + b"[" * levels + b"]" * levels + b", " + b"1" * 50 + b"]"
            assert parse_elements(text, 100) == elements_of_parsed(text)

    def test_large_object_is_not_an_array(self) -> None:
        assert parse_elements(b'{"a":[' + b"1," * 500 + b"1]}", 200) is NotAnArray
