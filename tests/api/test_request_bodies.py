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
BUDGET_BYTES = 64 * 1024 * 1024
MEBIBYTE = 1024 * 1024
COMPRESSED = gzip.compress(BODY)
INCOMPRESSIBLE = json.dumps({"payload": {"noise": Random(1).randbytes(100_000).hex()}}).encode()
BROKEN_STREAMS = {
    "empty": b"",
    "plain JSON": BODY,
    "garbage": b"\x00\xff" * 500,
    "zlib instead of gzip": zlib.compress(BODY),
    "raw deflate": zlib.compress(BODY, wbits=-15),
    "only the magic number": b"\x1f\x8b",
    "unknown method": COMPRESSED[:2] + b"\x07" + COMPRESSED[3:],
    "header alone": COMPRESSED[:10],
    "truncated in the data": COMPRESSED[:20],
    "truncated before the checksum": COMPRESSED[:-8],
    "truncated by one byte": COMPRESSED[:-1],
    "wrong checksum": COMPRESSED[:-8] + b"\x00\x00\x00\x00" + COMPRESSED[-4:],
    "wrong length": COMPRESSED[:-4] + b"\x00\x00\x00\x00",
    "flipped bits": COMPRESSED[:15] + bytes([COMPRESSED[15] ^ 0xFF]) + COMPRESSED[16:],
    "garbage behind it": COMPRESSED + b"x",
    "zeros behind it": COMPRESSED + b"\x00" * 512,
    "large trailing garbage": COMPRESSED + b"x" * 200_000,
    "two streams": COMPRESSED + COMPRESSED,
    "an empty second stream": COMPRESSED + gzip.compress(b""),
    "split into two streams": gzip.compress(BODY[:5]) + gzip.compress(BODY[5:]),
}


def post(
    client: ApiClient, body: bytes, path: str = "/events", coding: str = "gzip", headers: dict[str, str] | None = None
) -> TestResponse:
    all_headers = {"Content-Encoding": coding, **(headers or {})}
    return client.post(path, all_headers, data=body, content_type="application/json")


def add_file_name(stream: bytes, total_bytes: int) -> bytes:
    """Returns the stream with a file name in its header, so that it has `total_bytes`."""
    name = b"n" * (total_bytes - len(stream) - 1) + b"\x00"
    return stream[:3] + b"\x08" + stream[4:10] + name + stream[10:]


@pytest.fixture
def budget(app: Flask) -> ByteBudget:
    """Returns the app's budget. `reserve(BUDGET_BYTES)` fails while any request holds bytes of it."""
    budget: ByteBudget = app.extensions["inbox"].body_budget
    return budget


def test_compressed_event_is_stored_decompressed(acme: ApiClient) -> None:
    for coding in ("gzip", "GZIP", "x-gzip"):
        assert post(acme, COMPRESSED, coding=coding).status_code == 201, coding
    assert payloads(acme.peek()) == [{"order": 1001}] * 3


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
        response = post(acme, COMPRESSED, coding=coding)
        assert problem(response) == (415, "unsupported-media-type"), coding
        assert response.headers["Accept-Encoding"] == "gzip"
    assert acme.peek() == []


def test_415_for_the_media_type_names_no_coding(acme: ApiClient) -> None:
    # With Accept-Encoding, the 415 would say that the coding caused it (RFC 9110, 12.5.3).
    for content_type in ("text/plain", "application/json; charset=latin-1"):
        response = acme.post("/events", {"Content-Encoding": "gzip"}, data=COMPRESSED, content_type=content_type)
        assert response.status_code == 415
        assert "Accept-Encoding" not in response.headers


def test_broken_stream_is_a_400_and_stores_nothing(acme: ApiClient, budget: ByteBudget) -> None:
    for name, body in BROKEN_STREAMS.items():
        assert problem(post(acme, body)) == (400, "bad-request"), name
    assert acme.peek() == []
    budget.reserve(BUDGET_BYTES)


def test_large_stream_is_read_to_its_end(acme: ApiClient) -> None:
    # The stream exceeds one step of decompression, compressed and decompressed.
    compressed_event = gzip.compress(INCOMPRESSIBLE, 1)
    assert len(compressed_event) > 65_536
    assert post(acme, compressed_event).status_code == 201
    assert payloads(acme.peek()) == [json.loads(INCOMPRESSIBLE)["payload"]]
    for broken in (
        compressed_event[:65_536],
        compressed_event[:-1],
        compressed_event + b"x",
        add_file_name(COMPRESSED, 65_536) + b"x",
    ):
        assert problem(post(acme, broken)) == (400, "bad-request")


def test_decompressed_body_must_be_json(acme: ApiClient) -> None:
    for content in (b"", b"{", COMPRESSED):
        response = post(acme, gzip.compress(content))
        assert problem(response) == (400, "not-json")


class TestLimits:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return Settings(store=settings.store, max_event_bytes=100)

    def test_limit_applies_to_the_decompressed_size(self, acme: ApiClient) -> None:
        for filler_bytes, fits in ((78, True), (79, False)):
            body = b'{"payload": {"a": "' + b"x" * filler_bytes + b'"}}'
            response = post(acme, gzip.compress(body))
            assert response.status_code == (201 if fits else 413)
        assert len(acme.peek()) == 1

    def test_limit_applies_to_the_compressed_size_too(self, acme: ApiClient) -> None:
        assert post(acme, add_file_name(COMPRESSED, 100)).status_code == 201
        assert problem(post(acme, add_file_name(COMPRESSED, 101))) == (413, "too-large")

    def test_compressed_batch_has_the_limit_of_batches(self, acme: ApiClient) -> None:
        limit_bytes = MAX_BATCH_SIZE_IN_EVENTS * 100
        fitting = b"[" + b"{}, " * 100 + b"{}" + b" " * (limit_bytes - 404) + b"]"
        assert len(fitting) == limit_bytes
        assert post(acme, gzip.compress(fitting), "/events/batch").status_code == 201
        assert problem(post(acme, gzip.compress(fitting + b" "), "/events/batch")) == (413, "too-large")


def test_bomb_is_decompressed_up_to_the_limit_only(acme: ApiClient, budget: ByteBudget) -> None:
    compressor = zlib.compressobj(9, wbits=31)
    bomb = b"".join(compressor.compress(bytes(MEBIBYTE)) for _ in range(64)) + compressor.flush()
    assert len(bomb) < 100_000
    batch_limit_bytes = MAX_BATCH_SIZE_IN_EVENTS * 262_144

    for path, limit_bytes in (("/events", 262_144), ("/events/batch", batch_limit_bytes)):
        post(acme, COMPRESSED, path)
        tracemalloc.start()
        try:
            response = post(acme, bomb, path)
            _, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert problem(response) == (413, "too-large")
        assert limit_bytes < peak_bytes < 1.2 * limit_bytes + MEBIBYTE
    budget.reserve(BUDGET_BYTES)


def test_decompressed_bytes_count_against_the_budget(acme: ApiClient, budget: ByteBudget) -> None:
    compressed_event = gzip.compress(json.dumps({"payload": {"a": "x" * 200_000}}).encode())
    budget.reserve(BUDGET_BYTES - 150_000)
    response = post(acme, compressed_event)
    assert problem(response) == (503, "overloaded")
    assert acme.peek() == []

    budget.release(100_000)
    assert post(acme, compressed_event).status_code == 201
    # The request has released exactly what it had reserved.
    budget.reserve(250_000)
    with pytest.raises(Overloaded):
        budget.reserve(1)


def test_request_above_the_budget_gets_503_and_changes_nothing(acme: ApiClient, budget: ByteBudget) -> None:
    budget.reserve(BUDGET_BYTES - 20)
    for path, body in (("/events", {"text": "x" * 20}), ("/events/batch", [{"text": "x" * 20}])):
        response = acme.post(path, json=body)
        assert problem(response) == (503, "overloaded")
        assert response.headers["Retry-After"] == "1"
    assert acme.peek() == []
    assert acme.post("/events", json={"n": 1}).status_code == 201

    budget.release(BUDGET_BYTES - 20)
    assert acme.post("/events", json={"text": "x" * 20}).status_code == 201
    assert len(acme.peek()) == 2


def test_body_counts_against_the_budget_until_its_events_are_stored(
    app: Flask, acme: ApiClient, budget: ByteBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = app.extensions["inbox"].publish.store
    put, body = store.put, json.dumps([{"n": 1}]).encode()

    def put_if_the_body_is_reserved(*arguments: Any) -> Any:
        with pytest.raises(Overloaded):
            budget.reserve(BUDGET_BYTES - len(body) + 1)
        return put(*arguments)

    monkeypatch.setattr(store, "put", put_if_the_body_is_reserved)
    assert acme.post("/events/batch", data=body, content_type="application/json").status_code == 201
    budget.reserve(BUDGET_BYTES)


def test_budget_is_released_at_the_end_of_every_request(
    app: Flask, acme: ApiClient, budget: ByteBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def post(body: bytes, path: str = "/events/batch") -> int:
        return acme.post(path, data=body, content_type="application/json").status_code

    assert [post(b"[{}]"), post(b"[{}"), post(b"[7]"), post(b"{}", "/events"), post(b"[]")] == [201, 400, 422, 201, 422]
    assert post(b'[{"a": "' + b"x" * 300_000 + b'"}]') == 413
    budget.reserve(BUDGET_BYTES)
    assert post(b"[{}]") == 503
    budget.release(BUDGET_BYTES)

    def fail(*_: Any) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(app.extensions["inbox"].publish.store, "put", fail)
    assert post(b"[{}]") == 500
    budget.reserve(BUDGET_BYTES)


@pytest.mark.parametrize("max_event_bytes", [1, 262_144, 64 * 1024 * 1024])
def test_largest_body_alone_fits_the_budget(settings: Settings, max_event_bytes: int) -> None:
    with_limit = Settings(store=settings.store, max_event_bytes=max_event_bytes)
    budget = body_budget(with_limit)
    # 262,144 is the limit of bodies without events.
    for largest in (MAX_BATCH_SIZE_IN_EVENTS * max_event_bytes, 262_144):
        budget.reserve(largest)
        budget.release(largest)
