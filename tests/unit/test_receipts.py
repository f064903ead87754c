"""Receipts as text."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inbox.domain.events import Receipt
from inbox.domain.receipts import parse_receipt, receipt_text

RECEIPTS = st.builds(
    Receipt,
    st.from_regex("[a-z0-9][a-z0-9-]{0,62}", fullmatch=True),
    st.uuids().map(str),
    st.uuids().map(lambda each: each.hex),
)
VALID = receipt_text(Receipt("default", "6f7dd7a3-6f0c-4c1e-9a53-0d7b1f0c6a55", "0123456789abcdef0123456789abcdef"))


@given(RECEIPTS)
def test_receipt_is_parsed_from_its_text(receipt: Receipt) -> None:
    text = receipt_text(receipt)
    assert parse_receipt(text) == receipt
    assert len(text) <= 127
    assert text == base64.urlsafe_b64encode(base64.urlsafe_b64decode(text + "==")).decode().rstrip("=")


@given(RECEIPTS, st.data())
def test_changed_text_is_another_receipt_or_none(receipt: Receipt, data: st.DataObject) -> None:
    text = receipt_text(receipt)
    index = data.draw(st.integers(0, len(text)))
    changed = text[:index] + data.draw(st.text(max_size=2)) + text[index + data.draw(st.integers(0, 2)) :]
    found = parse_receipt(changed)
    assert found is None or (found == receipt) == (changed == text)


@given(st.text() | st.text("ABCabc019-_"))
def test_parsed_receipt_has_exactly_that_text(text: str) -> None:
    found = parse_receipt(text)
    assert found is None or receipt_text(found) == text


@pytest.mark.parametrize(
    "text", ["", VALID + "=", VALID + "==", f"{VALID}\n", VALID[:-1], VALID[:43], VALID.replace("a", "+"), "é" * 52]
)
def test_text_that_only_a_lenient_decoder_accepts_is_refused(text: str) -> None:
    assert parse_receipt(VALID) is not None
    assert parse_receipt(text) is None
