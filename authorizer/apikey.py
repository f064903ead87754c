"""API keys as text: mint, check, hash. Pure, apart from the randomness of a new key.

A key is `ibx_` + 43 base62 characters (32 random bytes) + 6 base62 characters of CRC-32. The checksum is no
secret: it lets a mistyped or made-up key be refused before anybody asks the store.
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
_SHAPE = re.compile(rf"{PREFIX}([0-9A-Za-z]{{{_SECRET_LENGTH}}})([0-9A-Za-z]{{{_CHECKSUM_LENGTH}}})", re.ASCII)


def mint() -> str:
    """A new key. Whoever calls this holds the only copy."""
    secret = _base62(int.from_bytes(secrets.token_bytes(_SECRET_BYTES)), _SECRET_LENGTH)
    return PREFIX + secret + _checksum(secret)


def looks_like_key(text: str) -> bool:
    """Whether it has the shape of a key."""
    return _SHAPE.fullmatch(text) is not None


def is_well_formed(text: str) -> bool:
    """Whether it could have been minted: shape and checksum."""
    match = _SHAPE.fullmatch(text)
    return match is not None and match[2] == _checksum(match[1])


def hash_of(key: str) -> str:
    """What is stored in place of a key: its SHA-256, in hex."""
    return hashlib.sha256(key.encode()).hexdigest()


def hint_of(key: str) -> str:
    """What people tell their keys apart by: a part of the checksum, which leaves more than 230 bits to guess."""
    return f"{PREFIX}…{key[-4:]}"


def _checksum(secret: str) -> str:
    return _base62(zlib.crc32(secret.encode()), _CHECKSUM_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
