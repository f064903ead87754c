"""Seals of the authorizer."""

import base64
import hashlib
import hmac
import json
import re
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authorizer import apikey
from authorizer.resolver import KeyRecord, Principal
from authorizer.sealing import SealContent, open_seal, seal

NOW_MS = 1_732_140_249_123
KEY_HASH = apikey.hash_of("a key")
RECORD = KeyRecord(
    Principal("acme", "Žižkov & Söhne", True, "key-1", frozenset({"events:write", "inbox:read"}), rate_limit=5),
    expires_at_ms=NOW_MS + 1,
    last_used_at_ms=NOW_MS - 1,
)
SEAL = seal(KEY_HASH, RECORD, NOW_MS, "secret")

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
any_number = st.none() | st.integers(0, 2**63)
records = st.builds(
    KeyRecord,
    st.builds(Principal, any_text, any_text, st.booleans(), any_text, st.frozensets(any_text, max_size=4), any_number),
    any_number,
    any_number,
)


def seal_content(content: Any, version: str = "v1") -> str:
    """Returns a seal with a valid MAC."""
    encoded = base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
    mac = hmac.digest(b"secret", f"{version}.{encoded}".encode(), hashlib.sha256)
    return f"{version}.{encoded}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def content_of(text: str) -> Any:
    encoded = text.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))


@given(record=records, now_ms=st.integers(0, 2**63), secret=any_text.filter(bool))
def test_opened_seal_equals_the_sealed_record(record: KeyRecord, now_ms: int, secret: str) -> None:
    text = seal(KEY_HASH, record, now_ms, secret)
    assert re.fullmatch(r"[A-Za-z0-9._-]+", text)
    assert open_seal(text, KEY_HASH, secret) == SealContent(record, now_ms)


def test_seal_is_deterministic() -> None:
    for scopes in (["inbox:read", "events:write"], ["events:write", "inbox:read"]):
        principal = Principal("acme", "Žižkov & Söhne", True, "key-1", frozenset(scopes), rate_limit=5)
        assert seal(KEY_HASH, KeyRecord(principal, NOW_MS + 1, NOW_MS - 1), NOW_MS, "secret") == SEAL
    # The order of a set differs between processes.
    many_scopes = KeyRecord(Principal("acme", "Acme", True, "key-1", frozenset(string.ascii_letters)))
    content = content_of(seal(KEY_HASH, many_scopes, NOW_MS, "secret"))
    assert content["record"]["principal"]["scopes"] == sorted(string.ascii_letters)


def test_seal_with_a_changed_character_is_refused() -> None:
    for index, letter in enumerate(SEAL):
        for other in {*string.ascii_letters, *string.digits, *"-_.=+/ ", "\0", "é", "\x80"} - {letter}:
            assert open_seal(SEAL[:index] + other + SEAL[index + 1 :], KEY_HASH, "secret") is None, (index, other)


def test_shortened_or_extended_seal_is_refused() -> None:
    for index in range(len(SEAL)):
        assert open_seal(SEAL[:index], KEY_HASH, "secret") is None
        assert open_seal(SEAL[index + 1 :], KEY_HASH, "secret") is None
        assert open_seal(SEAL[:index] + SEAL[index + 1 :], KEY_HASH, "secret") is None
    for changed in (f"{SEAL}=", f" {SEAL}", f"{SEAL}.", f"{SEAL},{SEAL}", f"{SEAL}\n"):
        assert open_seal(changed, KEY_HASH, "secret") is None


@given(text=st.text(st.characters(categories=None)))
def test_arbitrary_text_is_refused(text: str) -> None:
    assert open_seal(text, KEY_HASH, "secret") is None


def test_seal_needs_its_key_and_secret() -> None:
    assert open_seal(SEAL, apikey.hash_of("another key"), "secret") is None
    assert open_seal(SEAL, KEY_HASH, "Secret") is None
    assert open_seal(seal(KEY_HASH, RECORD, NOW_MS, ""), KEY_HASH, "") is None


def test_other_version_is_refused() -> None:
    assert open_seal(seal_content(content_of(SEAL)), KEY_HASH, "secret") == SealContent(RECORD, NOW_MS)
    for version in ("v2", "v0", "", "v1.v1"):
        assert open_seal(seal_content(content_of(SEAL), version), KEY_HASH, "secret") is None


@pytest.mark.parametrize("missing", ["key_hash", "sealed_at_ms", "record"])
def test_authentic_seal_with_a_missing_member_is_refused(missing: str) -> None:
    content = content_of(SEAL)
    del content[missing]
    assert open_seal(seal_content(content), KEY_HASH, "secret") is None


def test_authentic_seal_of_another_release_is_refused() -> None:
    def seal_record(record: Any) -> Any:
        return seal_content(content_of(SEAL) | {"record": record})

    record = content_of(SEAL)["record"]
    principal = record["principal"]
    without_tenant = {name: value for name, value in principal.items() if name != "tenant_id"}
    others: list[Any] = [
        None,
        [],
        record | {"colour": "blue"},
        record | {"principal": None},
        record | {"principal": principal | {"colour": "blue"}},
        record | {"principal": principal | {"scopes": None}},
        record | {"principal": without_tenant},
    ]
    for other in others:
        assert open_seal(seal_record(other), KEY_HASH, "secret") is None, other
    for no_object in (None, 1, "text", [], [1]):
        assert open_seal(seal_content(no_object), KEY_HASH, "secret") is None
