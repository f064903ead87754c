"""Keys as text."""

import hashlib
import re

import pytest

from authorizer import apikey


def test_a_minted_key_has_the_documented_form() -> None:
    key = apikey.mint()
    assert re.fullmatch(r"ibx_[0-9A-Za-z]{43}[0-9A-Za-z]{6}", key)
    assert apikey.looks_like_key(key)
    assert apikey.is_well_formed(key)


def test_no_two_keys_are_the_same() -> None:
    assert len({apikey.mint() for _ in range(1000)}) == 1000


def test_every_single_changed_character_breaks_the_checksum() -> None:
    key = apikey.mint()
    for place in range(4, len(key)):
        other = "0" if key[place] != "0" else "1"
        assert not apikey.is_well_formed(key[:place] + other + key[place + 1 :])


def test_two_characters_swapped_break_the_checksum() -> None:
    key = next(key for key in iter(apikey.mint, None) if key[10] != key[11])
    assert not apikey.is_well_formed(key[:10] + key[11] + key[10] + key[12:])


@pytest.mark.parametrize(
    "text", ["", "ibx_", "ibx_" + "0" * 48, "ibx_" + "0" * 50, "key_" + "0" * 49, "ibx_" + "é" * 49]
)
def test_other_text_is_no_key(text: str) -> None:
    assert not apikey.looks_like_key(text)
    assert not apikey.is_well_formed(text)


def test_a_line_end_behind_a_key_makes_it_another_text() -> None:
    assert not apikey.is_well_formed(apikey.mint() + "\n")


def test_the_hash_is_sha_256_in_hex() -> None:
    key = apikey.mint()
    assert apikey.hash_of(key) == hashlib.sha256(key.encode()).hexdigest()
