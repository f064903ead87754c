"""Seals: key records signed by the authorizer. The service trusts them instead of reading the key again.

A seal is `v1.CONTENT.MAC`: base64url of JSON, and an HMAC-SHA256 of everything before it. It contains the hash of its
key, so it is useless without that key.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass

from authorizer.resolver import KeyRecord, Principal

_VERSION = "v1"


@dataclass(frozen=True, slots=True)
class SealContent:
    record: KeyRecord
    sealed_at_ms: int


def parse_secret(text: str) -> str:
    """Returns the stripped secret; empty disables sealing. Raises ValueError if it is invalid."""
    secret = text.strip()
    if secret and not 32 <= len(secret) <= 1024:
        raise ValueError("32 to 1024 characters, or empty")
    return secret


def seal(key_hash: str, record: KeyRecord, now_ms: int, secret: str) -> str:
    principal = record.principal
    content = {
        "key_hash": key_hash,
        "sealed_at_ms": now_ms,
        "record": asdict(record) | {"principal": asdict(principal) | {"scopes": sorted(principal.scopes)}},
    }
    # UTF-8 instead of escapes, which would triple the length of the header for names in non-Latin scripts.
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    signed = f"{_VERSION}.{_base64url(text.encode())}"
    return f"{signed}.{_mac(signed, secret)}"


def open_seal(text: str, key_hash: str, secret: str) -> SealContent | None:
    """Returns the sealed record and its time, or None if `text` was not sealed for this key with this secret."""
    signed, _, mac = text.rpartition(".")
    # Without a secret, anyone could forge a seal.
    if not secret or not text.isascii() or not hmac.compare_digest(mac, _mac(signed, secret)):
        return None
    version, _, content = signed.partition(".")
    return _read(content, key_hash) if version == _VERSION else None


def _read(content: str, key_hash: str) -> SealContent | None:
    # The content is authentic, but may come from another release.
    try:
        found = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        if found["key_hash"] != key_hash:
            return None
        record = found["record"]
        principal = record["principal"]
        sealed_for = Principal(**principal | {"scopes": frozenset(principal["scopes"])})
        return SealContent(KeyRecord(**record | {"principal": sealed_for}), found["sealed_at_ms"])
    except (ValueError, KeyError, TypeError):
        return None


def _mac(text: str, secret: str) -> str:
    return _base64url(hmac.digest(secret.encode(), text.encode(), hashlib.sha256))


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
