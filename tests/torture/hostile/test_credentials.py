"""Contradictory, misplaced and malformed credentials."""

import base64
import time

from authorizer import sealing
from authorizer.apikey import hash_of, mint
from authorizer.resolver import KeyRecord, Principal
from tests.torture.hostile.target import Target, Tenant, is_problem
from tests.torture.raw_http import Response


def format_basic(user: str, password: str = "") -> str:
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode("latin-1")).decode()


def read_tenant_id(response: Response) -> str | None:
    if response.status == 200:
        return str(response.json()["tenant_id"])
    assert is_problem(response, 401, "unauthorized")
    assert response.headers["www-authenticate"].startswith("Bearer")
    return None


def test_contradictory_keys_are_a_401(target: Target, victim: Tenant, attacker: Tenant) -> None:
    ours, theirs = attacker.key, victim.key
    for headers in (
        [f"Authorization: Bearer {ours}", f"X-API-Key: {theirs}"],
        [f"X-API-Key: {theirs}", f"Authorization: Bearer {ours}"],
        [format_basic(ours), f"X-API-Key: {theirs}"],
        [format_basic(ours, theirs)],
        [format_basic(theirs, ours)],
        [f"Authorization: Bearer {ours}", f"Authorization: Bearer {theirs}"],
        [f"Authorization: Bearer {ours}", f"authorization: bearer {theirs}"],
        [f"Authorization: Bearer {ours}", format_basic(theirs)],
        [format_basic(theirs), f"Authorization: Bearer {ours}"],
        [f"X-API-Key: {ours}", f"x-api-key: {theirs}"],
        [f"X-API-Key: {ours}, {theirs}"],
        [f"Authorization: Bearer {ours},Bearer {theirs}"],
        [f"Authorization: Bearer {ours} {theirs}"],
        # A repeated header contains no valid key, and the other header must not be used instead.
        [f"X-API-Key: {theirs}", f"X-API-Key: {theirs}", f"Authorization: Bearer {ours}"],
        [f"Authorization: Bearer {theirs}", f"Authorization: Bearer {theirs}", f"X-API-Key: {ours}"],
        [format_basic(theirs), format_basic("x"), f"X-API-Key: {ours}"],
        ["Authorization: Digest a=b", format_basic(theirs), f"X-API-Key: {ours}"],
        [f"Authorization: Digest {theirs}", f"X-API-Key: {ours}"],
        [f"Authorization: {theirs}", f"X-API-Key: {ours}"],
        # The same for a malformed key.
        [f"Authorization: Bearer {theirs[:-1]}", f"X-API-Key: {ours}"],
        [f"Authorization: Bearer {theirs}x", f"X-API-Key: {ours}"],
        ["X-API-Key: ibx_nonsense", f"Authorization: Bearer {ours}"],
        [format_basic(theirs[:20], ours)],
    ):
        assert read_tenant_id(target.request("GET", "/me", *headers)) is None, headers


def test_repeated_key_beside_other_credentials_is_accepted(target: Target, attacker: Tenant) -> None:
    key = attacker.key
    for headers in (
        [f"Authorization: Bearer {key}", f"X-API-Key: {key}"],
        [format_basic(key, key), f"X-API-Key: {key}"],
        [f"Authorization: bEaReR \t {key} \t"],
        [f"Authorization: BASIC  {format_basic(key).split()[-1]}"],
        # Credentials for a proxy or gateway in front.
        [format_basic("proxy", "password"), f"X-API-Key: {key}"],
        ["Authorization: Bearer eyJhbGciOiJub25lIn0.e30.", f"X-API-Key: {key}"],
        ['Authorization: Digest username="a", realm="b"', f"X-API-Key: {key}"],
        ["X-API-Key: of-the-gateway", f"Authorization: Bearer {key}"],
    ):
        assert read_tenant_id(target.request("GET", "/me", *headers)) == attacker.tenant_id, headers


def test_lookalike_headers_are_ignored(target: Target, victim: Tenant, attacker: Tenant) -> None:
    for name in (
        "X_API_Key",
        "X_API-Key",
        "HTTP_X_API_KEY",
        "X-API-Key-",
        "X-Api-Keys",
        "Proxy-Authorization",
        "Cookie",
    ):
        assert read_tenant_id(target.request("GET", "/me", f"{name}: {victim.key}")) is None, name
        both = target.request("GET", "/me", f"{name}: {victim.key}", attacker.authorization)
        assert read_tenant_id(both) == attacker.tenant_id, name


def test_malformed_keys_get_the_same_401(target: Target, attacker: Tenant) -> None:
    key = attacker.key
    for wrong in (
        key[:-1],
        key + "0",
        f"\xa0{key}",
        f"{key}\x85",
        key.upper(),
        key.replace("ibx_", "IBX_"),
        "ibx_" + "a" * 5_000,
        "ibx_" + "\xe9" * 49,
        key[:20] + "\xb2" + key[21:],
        "\xff\xfe",
        "%69bx_" + key[4:],
        f'"{key}"',
        f"<{key}>",
        mint(),
    ):
        for header in (f"X-API-Key: {wrong}", f"Authorization: Bearer {wrong}", format_basic("x", wrong)):
            assert read_tenant_id(target.request("GET", "/me", header)) is None, header[:80]


def test_key_in_the_query_or_body_is_ignored(target: Target, victim: Tenant) -> None:
    for name in ("key", "api_key", "access_token", "X-API-Key", "Authorization"):
        response = target.request("GET", f"/inbox?{name}={victim.key}")
        assert read_tenant_id(response) is None, name
    form = f"access_token={victim.key}"
    response = target.request("POST", "/events", "Content-Type: application/x-www-form-urlencoded", body=form)
    assert read_tenant_id(response) is None
    assert victim.list_events() == []


def test_forged_principal_header_is_ignored(target: Target, victim: Tenant, attacker: Tenant) -> None:
    principal = Principal(victim.tenant_id, "", True, "key_1", frozenset({"inbox:read"}))
    for key in (attacker.key, victim.key, mint()):
        seal = sealing.seal(hash_of(key), KeyRecord(principal), time.time_ns() // 1_000_000, "s" * 32)
        headers = f"X-Inbox-Principal: {seal}", f"X_Inbox_Principal: {seal}"
        assert read_tenant_id(target.request("GET", "/me", *headers)) is None
        assert read_tenant_id(target.request("GET", "/me", *headers, f"X-API-Key: {mint()}")) is None
        assert read_tenant_id(target.request("GET", "/me", *headers, attacker.authorization)) == attacker.tenant_id
