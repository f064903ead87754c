"""What the authorizer found out, sealed for the service behind it, which then need not look it up again.

A seal is `v1.CONTENT.MAC`: base64url of JSON, and an HMAC-SHA256 over all that stands before it. It names the hash of
the key that it was made for, so it is worth nothing without that key.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from typing import Any

from authorizer.resolver import KeyRecord, Principal

_VERSION = "v1"


@dataclass(frozen=True, slots=True)
class Sealed:
    record: KeyRecord
    sealed_at_ms: int


def parse_secret(text: str) -> str:
    """As both sides read it, whatever blanks stand around it; empty where nothing is to be sealed."""
    secret = text.strip()
    if secret and not 32 <= len(secret) <= 1024:
        raise ValueError("32 to 1024 characters, or empty")
    return secret


def seal(key_hash: str, record: KeyRecord, now_ms: int, secret: str) -> str:
    content = {
        "key_hash": key_hash,
        "sealed_at_ms": now_ms,
        "record": asdict(record) | {"principal": _as_json(record.principal)},
    }
    # As UTF-8 and not as escapes: those would make a header of some scripts three times as long.
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    signed = f"{_VERSION}.{_base64url(text.encode())}"
    return f"{signed}.{_mac(signed, secret)}"


def open_seal(text: str, key_hash: str, secret: str) -> Sealed | None:
    """None for whatever was not sealed for this key with this secret."""
    signed, _, mac = text.rpartition(".")
    # Without a secret anybody could make a seal.
    if not secret or not text.isascii() or not hmac.compare_digest(mac, _mac(signed, secret)):
        return None
    version, _, content = signed.partition(".")
    return _read(content, key_hash) if version == _VERSION else None


def _read(content: str, key_hash: str) -> Sealed | None:
    # It is authentic, and may still come from another release than this one.
    try:
        found = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        if found["key_hash"] != key_hash:
            return None
        record = found["record"]
        principal = record["principal"]
        whose = Principal(**principal | {"scopes": frozenset(principal["scopes"])})
        return Sealed(KeyRecord(**record | {"principal": whose}), found["sealed_at_ms"])
    except (ValueError, KeyError, TypeError):
        return None


def _as_json(principal: Principal) -> dict[str, Any]:
    return asdict(principal) | {"scopes": sorted(principal.scopes)}


def _mac(text: str, secret: str) -> str:
    return _base64url(hmac.digest(secret.encode(), text.encode(), hashlib.sha256))


def _base64url(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
