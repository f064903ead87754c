"""API keys as text."""

import hashlib
import re

import pytest

from authorizer import apikey


def test_new_key_has_the_documented_format() -> None:
    key = apikey.mint()
    assert re.fullmatch(r"ibx_[0-9A-Za-z]{43}[0-9A-Za-z]{6}", key)
    assert apikey.looks_like_key(key)
    assert apikey.is_well_formed(key)
    assert not apikey.is_well_formed(key + "\n")


def test_keys_are_unique() -> None:
    assert len({apikey.mint() for _ in range(1000)}) == 1000


def test_changed_character_breaks_the_checksum() -> None:
    key = apikey.mint()
    for index in range(4, len(key)):
        other = "0" if key[index] != "0" else "1"
        assert not apikey.is_well_formed(key[:index] + other + key[index + 1 :])


def test_swapped_characters_break_the_checksum() -> None:
    key = next(key for key in iter(apikey.mint, None) if key[10] != key[11])
    assert not apikey.is_well_formed(key[:10] + key[11] + key[10] + key[12:])


@pytest.mark.parametrize(
    "text",
    ["", "ibx_", "ibx_" + "0" * 48, "ibx_" + "0" * 50, "key_" + "0" * 49, "ibx_" + "é" * 49],
)
def test_other_text_is_not_a_key(text: str) -> None:
    assert not apikey.looks_like_key(text)
    assert not apikey.is_well_formed(text)


def test_hash_is_sha_256_in_hex() -> None:
    key = apikey.mint()
    assert apikey.hash_of(key) == hashlib.sha256(key.encode()).hexdigest()
