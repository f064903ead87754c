"""Request bodies: gzip, limits, and the memory budget of a process."""

import gzip
import json
import tracemalloc
import zlib
from random import Random
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from inbox.api.request_bodies import MAX_BATCH_SIZE_IN_EVENTS, ByteBudget
from inbox.app import body_budget
from inbox.errors import Overloaded
from inbox.settings import Settings
from tests.api.conftest import ApiClient, payloads, problem, receipts

BODY = json.dumps({"payload": {"order": 1001}}).encode()
BUDGET = 64 * 1024 * 1024
MEBIBYTE = 1024 * 1024
PACKED = gzip.compress(BODY)
INCOMPRESSIBLE = json.dumps({"payload": {"noise": Random(1).randbytes(100_000).hex()}}).encode()
BROKEN = {
    "empty": b"",
    "plain JSON": BODY,
    "garbage": b"\x00\xff" * 500,
    "zlib instead of gzip": zlib.compress(BODY),
    "raw deflate": zlib.compress(BODY, wbits=-15),
    "only the magic number": b"\x1f\x8b",
    "unknown method": PACKED[:2] + b"\x07" + PACKED[3:],
    "header alone": PACKED[:10],
    "truncated in the data": PACKED[:20],
    "truncated before the checksum": PACKED[:-8],
    "truncated by one byte": PACKED[:-1],
    "wrong checksum": PACKED[:-8] + b"\x00\x00\x00\x00" + PACKED[-4:],
    "wrong length": PACKED[:-4] + b"\x00\x00\x00\x00",
    "flipped bits": PACKED[:15] + bytes([PACKED[15] ^ 0xFF]) + PACKED[16:],
    "garbage behind it": PACKED + b"x",
    "zeros behind it": PACKED + b"\x00" * 512,
    "large trailing garbage": PACKED + b"x" * 200_000,
    "two streams": PACKED + PACKED,
    "an empty second stream": PACKED + gzip.compress(b""),
    "split into two streams": gzip.compress(BODY[:5]) + gzip.compress(BODY[5:]),
}


def post(
    client: ApiClient, body: bytes, path: str = "/events", coding: str = "gzip", headers: dict[str, str] | None = None
) -> TestResponse:
    named = {"Content-Encoding": coding, **(headers or {})}
    return client.post(path, named, data=body, content_type="application/json")


def padded(packed: bytes, size: int) -> bytes:
    """Returns the same stream, longer because of a file name in its header."""
    name = b"n" * (size - len(packed) - 1) + b"\x00"
    return packed[:3] + b"\x08" + packed[4:10] + name + packed[10:]


@pytest.fixture
def budget(app: Flask) -> ByteBudget:
    budget: ByteBudget = app.extensions["inbox"].body_budget
    return budget


def test_compressed_event_is_stored_decompressed(acme: ApiClient) -> None:
    for coding in ("gzip", "GZIP", "x-gzip"):
        assert post(acme, PACKED, coding=coding).status_code == 201, coding
    assert payloads(acme.undelivered()) == [{"order": 1001}] * 3


def test_body_without_coding_is_accepted(acme: ApiClient) -> None:
    for coding in ("", "identity", "Identity"):
        assert post(acme, BODY, coding=coding).status_code == 201, coding


def test_every_endpoint_accepts_a_compressed_body(acme: ApiClient, acme_manager: ApiClient, admin: ApiClient) -> None:
    def compressed(document: Any) -> dict[str, Any]:
        data = gzip.compress(json.dumps(document).encode())
        return {"data": data, "headers": {"Content-Encoding": "gzip"}, "content_type": "application/json"}

    assert acme.post("/events/batch", **compressed([{"n": 1}, {"n": 2}])).status_code == 201
    first, second = receipts(acme.lease())
    for verb, receipt in (("extend", first), ("release", second), ("ack", first)):
        assert acme.post(f"/inbox/{verb}", **compressed({"receipts": [receipt]})).get_json()["lost"] == []
    assert acme.post("/events/replay", **compressed({})).get_json()["replayed"] == 1
    assert acme_manager.put("/inboxes/crm", **compressed({"event_types": ["a.*"]})).get_json()["event_types"] == ["a.*"]
    assert acme_manager.post("/keys", **compressed({"name": "zapier"})).get_json()["name"] == "zapier"
    assert admin.post("/admin/tenants", **compressed({"email": "a@b.example"})).get_json()["email"] == "a@b.example"


def test_repeated_event_can_be_compressed_differently(acme: ApiClient) -> None:
    key = {"Idempotency-Key": "k"}
    first = post(acme, BODY, coding="identity", headers=key)
    for level in (1, 9):
        again = post(acme, gzip.compress(BODY, level), headers=key)
        assert (again.status_code, again.get_json()) == (200, first.get_json())
    other = gzip.compress(BODY.replace(b"1001", b"1002"))
    assert post(acme, other, headers=key).status_code == 409


def test_other_coding_is_a_415_that_names_gzip(acme: ApiClient) -> None:
    lists = ("gzip, gzip", "gzip,identity", "identity, gzip")
    for coding in ("deflate", "br", "zstd", "compress", *lists, "gzip;q=1", "*", "nonsense"):
        response = post(acme, PACKED, coding=coding)
        assert problem(response) == (415, "unsupported-media-type"), coding
        assert response.headers["Accept-Encoding"] == "gzip"
    assert acme.undelivered() == []


def test_415_for_the_media_type_names_no_coding(acme: ApiClient) -> None:
    # RFC 9110, 12.5.3: the header would blame the coding.
    for content_type in ("text/plain", "application/json; charset=latin-1"):
        response = acme.post("/events", {"Content-Encoding": "gzip"}, data=PACKED, content_type=content_type)
        assert response.status_code == 415
        assert "Accept-Encoding" not in response.headers


def test_broken_stream_is_a_400_and_stores_nothing(acme: ApiClient, budget: ByteBudget) -> None:
    for name, body in BROKEN.items():
        assert problem(post(acme, body)) == (400, "bad-request"), name
    assert acme.undelivered() == []
    budget.reserve(BUDGET)


def test_large_stream_is_read_to_its_end(acme: ApiClient) -> None:
    # Larger than one step of decompression, before and after it.
    packed = gzip.compress(INCOMPRESSIBLE, 1)
    assert len(packed) > 65_536
    assert post(acme, packed).status_code == 201
    assert payloads(acme.undelivered()) == [json.loads(INCOMPRESSIBLE)["payload"]]
    for broken in (packed[:65_536], packed[:-1], packed + b"x", padded(PACKED, 65_536) + b"x"):
        assert problem(post(acme, broken)) == (400, "bad-request")


def test_gzip_without_json_is_not_json(acme: ApiClient) -> None:
    for content in (b"", b"{", PACKED):
        response = post(acme, gzip.compress(content))
        assert problem(response) == (400, "not-json")


class TestLimits:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return Settings(store=settings.store, max_event_bytes=100)

    def test_decompressed_size_counts(self, acme: ApiClient) -> None:
        for filler, fits in ((78, True), (79, False)):
            body = b'{"payload": {"a": "' + b"x" * filler + b'"}}'
            response = post(acme, gzip.compress(body))
            assert response.status_code == (201 if fits else 413)
        assert len(acme.undelivered()) == 1

    def test_compressed_size_counts_too(self, acme: ApiClient) -> None:
        assert post(acme, padded(PACKED, 100)).status_code == 201
        assert problem(post(acme, padded(PACKED, 101))) == (413, "too-large")

    def test_batch_has_the_limit_of_a_batch(self, acme: ApiClient) -> None:
        limit = MAX_BATCH_SIZE_IN_EVENTS * 100
        fitting = b"[" + b"{}, " * 100 + b"{}" + b" " * (limit - 404) + b"]"
        assert len(fitting) == limit
        assert post(acme, gzip.compress(fitting), "/events/batch").status_code == 201
        assert problem(post(acme, gzip.compress(fitting + b" "), "/events/batch")) == (413, "too-large")


def test_bomb_is_decompressed_up_to_the_limit_only(acme: ApiClient, budget: ByteBudget) -> None:
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(64)) + packer.flush()
    assert len(bomb) < 100_000
    batch_limit = MAX_BATCH_SIZE_IN_EVENTS * 262_144

    for path, limit in (("/events", 262_144), ("/events/batch", batch_limit)):
        post(acme, PACKED, path)
        tracemalloc.start()
        try:
            response = post(acme, bomb, path)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert problem(response) == (413, "too-large")
        assert limit < peak < 1.2 * limit + MEBIBYTE
    budget.reserve(BUDGET)


def test_decompressed_bytes_count_against_the_budget(acme: ApiClient, budget: ByteBudget) -> None:
    packed = gzip.compress(json.dumps({"payload": {"a": "x" * 200_000}}).encode())
    budget.reserve(BUDGET - 150_000)
    response = post(acme, packed)
    assert problem(response) == (503, "overloaded")
    assert acme.undelivered() == []

    budget.release(100_000)
    assert post(acme, packed).status_code == 201
    # Exactly what was reserved is released.
    budget.reserve(250_000)
    with pytest.raises(Overloaded):
        budget.reserve(1)


def test_request_above_the_budget_gets_503_and_changes_nothing(acme: ApiClient, budget: ByteBudget) -> None:
    budget.reserve(BUDGET - 20)
    for path, body in (("/events", {"text": "x" * 20}), ("/events/batch", [{"text": "x" * 20}])):
        response = acme.post(path, json=body)
        assert problem(response) == (503, "overloaded")
        assert response.headers["Retry-After"] == "1"
    assert acme.undelivered() == []
    assert acme.post("/events", json={"n": 1}).status_code == 201

    budget.release(BUDGET - 20)
    assert acme.post("/events", json={"text": "x" * 20}).status_code == 201
    assert len(acme.undelivered()) == 2


def test_body_counts_until_its_events_are_stored(
    app: Flask, acme: ApiClient, budget: ByteBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = app.extensions["inbox"].publish.store
    put, body = store.put, json.dumps([{"n": 1}]).encode()

    def put_while_counted(*arguments: Any) -> Any:
        with pytest.raises(Overloaded):
            budget.reserve(BUDGET - len(body) + 1)
        return put(*arguments)

    monkeypatch.setattr(store, "put", put_while_counted)
    assert acme.post("/events/batch", data=body, content_type="application/json").status_code == 201
    budget.reserve(BUDGET)


def test_budget_is_released_at_the_end_of_every_request(
    app: Flask, acme: ApiClient, budget: ByteBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def post(body: bytes, path: str = "/events/batch") -> int:
        return acme.post(path, data=body, content_type="application/json").status_code

    assert [post(b"[{}]"), post(b"[{}"), post(b"[7]"), post(b"{}", "/events"), post(b"[]")] == [201, 400, 422, 201, 422]
    assert post(b'[{"a": "' + b"x" * 300_000 + b'"}]') == 413
    budget.reserve(BUDGET)
    assert post(b"[{}]") == 503
    budget.release(BUDGET)

    def fail(*_: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(app.extensions["inbox"].publish.store, "put", fail)
    assert post(b"[{}]") == 500
    budget.reserve(BUDGET)


@pytest.mark.parametrize("max_event_bytes", [1, 262_144, 64 * 1024 * 1024])
def test_largest_bodies_always_fit_alone(settings: Settings, max_event_bytes: int) -> None:
    with_limit = Settings(store=settings.store, max_event_bytes=max_event_bytes)
    budget = body_budget(with_limit)
    # 262,144 is the limit of bodies without events.
    for largest in (MAX_BATCH_SIZE_IN_EVENTS * max_event_bytes, 262_144):
        budget.reserve(largest)
        budget.release(largest)
