"""API keys as text: creating, checking and hashing them.

A key is `ibx_` + 43 base62 characters (32 random bytes) + 6 base62 characters of CRC-32. The checksum is not
a secret: mistyped and invented keys are refused without asking the store.
"""

import hashlib
import re
import secrets
import zlib

PREFIX = "ibx_"
_SECRET_BYTES = 32
_SECRET_LENGTH = 43
_CHECKSUM_LENGTH = 6
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORMAT = re.compile(rf"{PREFIX}([0-9A-Za-z]{{{_SECRET_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})", re.ASCII)


def mint() -> str:
    """Returns a new random key. No copy is stored."""
    secret = _base62(int.from_bytes(secrets.token_bytes(_SECRET_BYTES)), _SECRET_LENGTH)
    return PREFIX + secret + _checksum(secret)


def looks_like_key(text: str) -> bool:
    return _FORMAT.fullmatch(text) is not None


def is_well_formed(text: str) -> bool:
    """Returns True if both format and checksum are valid."""
    match = _FORMAT.fullmatch(text)
    return match is not None and match[2] == _checksum(match[1])


def hash_of(key: str) -> str:
    """Returns the SHA-256 in hex, which is stored in place of the key."""
    return hashlib.sha256(key.encode()).hexdigest()


def hint_of(key: str) -> str:
    """Returns the key's last four characters, by which people recognise it. More than 230 bits stay unknown."""
    return f"{PREFIX}…{key[-4:]}"


def _checksum(secret: str) -> str:
    return _base62(zlib.crc32(secret.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
