"""Requests with invalid parameters, headers or members get a 422 with a pointer and change nothing."""

import json
from typing import Any

import pytest

from tests.api.conftest import TenantFactory, pointers
from tests.api.routes import Sample, create_sample

# Query strings, by path and by the pointer of their error.
INVALID_QUERIES: dict[str, dict[str, list[str]]] = {
    "/inbox": {
        "/limit": [
            *("limit=0", "limit=501", "limit=-1", "limit=ten", "limit=1.5", "limit=", "limit=1&limit=2", "limit=1_0"),
            *("limit=%2B5", "limit=%201", "limit=5%0A", "limit=%D9%A3"),
        ],
        "/mode": ["mode=take", "mode="],
        "/order": ["order=newest", "mode=peek&order=random"],
        "/lease_seconds": [
            *("mode=lease&lease_seconds=0", "mode=lease&lease_seconds=43201"),
            *("lease_seconds=60", "mode=peek&lease_seconds=60"),
        ],
        "/wait": ["wait=21", "wait=-1", "wait=1.5", "wait=", "wait=long"],
        "/limt": ["limt=5"],
    },
    "/events": {
        "/status": ["status=gone", "status="],
        "/event_type": ["event_type=", "event_type=a%20b"],
        "/since": ["since=yesterday", "since=", "since=-1", "since=1.5", "since=1234567890123456"],
        "/until": ["until=2026-13-01", "until=2026-11-16T01:00:00+01:00"],
        "/order": ["order=random"],
        "/limit": ["limit=0", "limit=501", "limit=1&limit=2"],
        "/inbox": ["inbox=Crm", "inbox="],
        "/mode": ["mode=peek"],
    },
    "/events/{event_id}": {"/inbox": ["inbox="], "/box": ["box=crm"]},
    "/stats": {"/window": ["window=1h", "window="], "/inbox": ["inbox=UPPER"], "/surprise": ["surprise=1"]},
    "/admin/tenants": {
        "/pageSize": ["pageSize=0", "pageSize=101", "pageSize=x"],
        "/startAt": ["startAt=x", "startAt=99999999999999.acme", "startAt=1.a%23b"],
        "/status": ["status=active"],
        "/since": ["since=yesterday"],
        "/includeInactive": ["includeInactive=1"],
        "/limit": ["limit=5"],
    },
}
INVALID_QUERIES["/inbox/crm"] = INVALID_QUERIES["/inbox"]

RECEIPTS = {"receipts": ["{receipt}"]}
NOT_OBJECTS: list[Any] = [[], ["a"], "text", 1, None]
NOT_PAYLOADS: list[Any] = [[], None, "text", 1]
NOT_EVENT_TYPES: list[Any] = ["", "x" * 129, "a b", "é", "a\n", "a*", 7, ["a"], True]
NOT_IDEMPOTENCY_KEYS: list[Any] = ["", "x" * 256, None]
NOT_SECONDS: list[Any] = [-1, 43201, 1.5, 1.0, "5", True, None, [1], 10**30]
INVALID_RECEIPTS: dict[str, list[Any]] = {
    "/receipts": [{}, {"receipts": None}, {"receipts": []}, {"receipts": "x"}, {"receipts": ["x"] * 501}],
    "/receipts/0": [{"receipts": [7]}, {"receipts": ["x" * 301]}],
    "/receipts/1": [{"receipts": ["x", None]}],
    "/receipt": [RECEIPTS | {"receipt": "x"}],
    "": NOT_OBJECTS,
}
NOT_BOOLEANS: list[Any] = [1, 0, "true", "yes", None, [], {}]
EMAIL = {"email": "ops@acme.example"}
INVALID_ENVELOPES: dict[str, list[Any]] = {
    "/typ": [{"payload": {}, "typ": "a"}],
    "/a~1b~0c": [{"payload": {}, "a/b~c": 1}],
    "/payload": [{"payload": payload} for payload in NOT_PAYLOADS],
    "/idempotency_key": [{"payload": {}, "idempotency_key": key} for key in NOT_IDEMPOTENCY_KEYS],
    "/event_type": [{"payload": {}, "event_type": each} for each in NOT_EVENT_TYPES],
}
INVALID_BODIES: dict[tuple[str, str], dict[str, list[Any]]] = {
    ("POST", "/events"): INVALID_ENVELOPES | {"": NOT_OBJECTS},
    ("POST", "/events?raw=true"): {"": NOT_OBJECTS},
    ("POST", "/events?eventtype=a"): {"/eventtype": [{"payload": {}}]},
    ("POST", "/events/batch"): {
        "": [[], [{}] * 501, {}, {"payload": {}}, "text", None],
        **{f"/2{pointer}": [[{"n": 0}, {"n": 1}, bad] for bad in each] for pointer, each in INVALID_ENVELOPES.items()},
        "/1": [[{"n": 0}, bad, {"n": 3}] for bad in NOT_OBJECTS],
    },
    ("POST", "/events/batch?raw=true"): {"/1": [[{}, 7]]},
    **{
        ("POST", f"{path}?raw={value}"): {"/raw": [body]}
        for path, body in (("/events", {}), ("/events/batch", [{}]))
        for value in ("", "1", "True", "yes", "on", "true%20", "raw")
    },
    ("POST", "/inbox/ack"): {
        **INVALID_RECEIPTS,
        "/lease_seconds": [RECEIPTS | {"lease_seconds": 5}],
        "/delay_seconds": [RECEIPTS | {"delay_seconds": 5}],
        "/failed": [RECEIPTS | {"failed": True}],
    },
    ("POST", "/inbox/release"): {
        **INVALID_RECEIPTS,
        "/lease_seconds": [RECEIPTS | {"lease_seconds": 5}],
        "/delay_seconds": [RECEIPTS | {"delay_seconds": seconds} for seconds in NOT_SECONDS],
        "/failed": [RECEIPTS | {"failed": flag} for flag in NOT_BOOLEANS],
    },
    ("POST", "/inbox/extend"): {
        **INVALID_RECEIPTS,
        "/lease_seconds": [RECEIPTS | {"lease_seconds": seconds} for seconds in [0, *NOT_SECONDS]],
        "/delay_seconds": [RECEIPTS | {"delay_seconds": 5}],
        "/failed": [RECEIPTS | {"failed": True}],
    },
    ("POST", "/events/replay"): {
        "/since": [{"since": since} for since in ("yesterday", None, 1.5, -1)],
        "/until": [{"until": True}, {"until": [1]}],
        "/event_type": [{"event_type": ""}, {"event_type": 7}],
        "/status": [{"status": status} for status in ("leased", "undelivered", "gone", 7)],
        "/inbox": [{"inbox": "A"}],
        "/order": [{"order": "newest"}],
        "": NOT_OBJECTS,
    },
    ("POST", "/events/replay?status=dead"): {"/status": [{}]},
    ("DELETE", "/events/{event_id}?inbox=default"): {"/inbox": [None]},
    ("PUT", "/inboxes/new"): {
        "/event_types": [{"event_types": types} for types in ([], "order.*", ["a"] * 51)],
        "/event_types/0": [{"event_types": [each]} for each in ("", "[ab]", "a\n", "x" * 129, 7)],
        "/event_types/1": [{"event_types": ["a", "b?"]}],
        "/event_type": [{"event_type": ["a"]}],
        "/name": [{"name": "new"}],
        "/enabled": [{"enabled": False}, {"enabled": True, "event_types": ["a"]}],
        "": [[], 7],
    },
    ("PUT", "/inboxes/default"): {
        "/enabled": [{}, *({"enabled": flag} for flag in NOT_BOOLEANS)],
        "/event_types": [{"event_types": ["a"]}, {"enabled": False, "event_types": ["a"]}],
    },
    ("DELETE", "/inboxes/default"): {"/name": [None]},
    **{
        ("PUT", f"/inboxes/{name}"): {"/name": [{}, {"enabled": False}]}
        for name in ("A", "-a", "a_b", "a.b", "x" * 64, "%C3%A9", "a%0A", "%20", "%25")
    },
    ("POST", "/keys"): {
        "/scopes": [{"scopes": []}, {"scopes": "admin"}],
        "/scopes/0": [{"scopes": ["everything"]}],
        "/name": [{"name": name} for name in (7, "x" * 201, "a\nb")],
        "/expires_at": [{"expires_at": "tomorrow"}, {"expires_at": 1}],
        "/key": [{"key": "ibx_of_my_own"}],
    },
    ("POST", "/keys/{key_id}/rotate"): {
        "/overlap_seconds": [{"overlap_seconds": seconds} for seconds in (-1, 2_592_001, 1.5, "60")]
    },
    ("POST", "/admin/tenants"): {
        "/email": [{}, *({"email": email} for email in ("nobody", "a b@c", "a@" + "b" * 250, None))],
        "/tenant_id": [EMAIL | {"tenant_id": "a#b"}, EMAIL | {"tenant_id": ""}],
        "/destination_email": [EMAIL | {"destination_email": "x"}],
        "/organization_name": [EMAIL | {"organization_name": name} for name in ("", "x" * 201, "a\tb")],
        "/rate_limit": [EMAIL | {"rate_limit": -1}, EMAIL | {"rate_limit": "5"}],
        "/status": [EMAIL | {"status": "REGISTERED"}],
        "/active": [EMAIL | {"active": False}],
    },
    ("PUT", "/admin/tenants/acme/status"): {
        "/status": [{}, {"status": "active"}],
        "/force": [{"status": "VALIDATED", "force": "yes"}],
    },
}
# Pairs of header and value, by method and path. WSGI passes headers as Latin-1.
INVALID_HEADERS: dict[tuple[str, str], list[tuple[str, str]]] = {
    ("GET", "/inbox"): [("Inbox-Attempt", value) for value in ("", "x" * 129, "\xff")],
    ("GET", "/inbox?mode=peek"): [("Inbox-Attempt", "a")],
    ("POST", "/events"): [("Idempotency-Key", value) for value in ("", "x" * 256, "\xff")],
    ("PUT", "/inboxes/new"): [("If-None-Match", value) for value in ('"tag"', "", "*, *", "crm")],
}


@pytest.fixture
def sample(tenant_factory: TenantFactory) -> Sample:
    return create_sample(tenant_factory)


def assert_rejected(sample: Sample, method: str, path: str, pointer: str, **options: Any) -> None:
    client = sample.admin if path.startswith("/admin/") else sample.owner
    response = client.request(method, path.format(**sample.values), **options)
    assert (response.status_code, pointers(response)) == (422, [pointer]), (method, path, options)


@pytest.mark.parametrize("path", INVALID_QUERIES)
def test_invalid_parameter_is_rejected(sample: Sample, path: str) -> None:
    before = sample.read_state()
    for pointer, queries in INVALID_QUERIES[path].items():
        for query in queries:
            assert_rejected(sample, "GET", f"{path}?{query}", pointer)
    assert sample.read_state() == before


@pytest.mark.parametrize(("method", "path"), INVALID_BODIES)
def test_invalid_member_is_rejected(sample: Sample, method: str, path: str) -> None:
    before = sample.read_state()
    for pointer, bodies in INVALID_BODIES[method, path].items():
        for body in bodies:
            data = json.dumps(body).replace("{receipt}", sample.values["receipt"])
            options = {} if method == "DELETE" else {"data": data, "content_type": "application/json"}
            assert_rejected(sample, method, path, pointer, **options)
    assert sample.read_state() == before


@pytest.mark.parametrize(("method", "path"), INVALID_HEADERS)
def test_invalid_header_is_rejected(sample: Sample, method: str, path: str) -> None:
    before = sample.read_state()
    for name, value in INVALID_HEADERS[method, path]:
        options: dict[str, Any] = {} if method == "GET" else {"json": {}}
        assert_rejected(sample, method, path, f"/{name}", headers={name: value}, **options)
    assert sample.read_state() == before


@pytest.mark.parametrize(
    ("method", "path", "body", "detail"),
    [
        ("GET", "/inbox?limit=0", None, "`limit` must be between 1 and 500."),
        ("GET", "/inbox?limit=-1", None, "`limit` must be between 1 and 500."),
        ("GET", "/inbox?wait=-1", None, "`wait` must be between 0 and 20."),
        ("GET", f"/inbox?wait={10**30}", None, "`wait` must be between 0 and 20."),
        ("GET", "/inbox?limit=ten", None, "`limit` must be a whole number."),
        ("GET", "/inbox?limit=-0", None, "`limit` must be a whole number."),
        ("GET", "/inbox?limit=1&limit=2", None, "`limit` is given more than once."),
        ("GET", "/inbox?limt=5", None, "`limt` is not a known parameter or member."),
        ("GET", "/inbox?mode=take", None, "`mode` must be one of consume, peek, lease."),
        ("GET", "/inbox?lease_seconds=5", None, "`lease_seconds` is only allowed with mode=lease."),
        ("GET", "/events?status=gone", None, "`status` must be one of undelivered, leased, delivered, dead."),
        ("GET", "/events?since=x", None, "`since` must be epoch milliseconds or ISO 8601."),
        (
            *("GET", "/events?since=2026-11-16T01:00:00+01:00", None),
            "`since` must be epoch milliseconds or ISO 8601. In a URL, write + as %2B.",
        ),
        ("POST", "/events", [], "The body must be an object."),
        ("POST", "/events", {"payload": 1}, "`payload` must be an object."),
        ("POST", "/events", {"payload": {}, "event_type": 7}, "`event_type` must be a string."),
        ("POST", "/events/batch", [{}, 7], "Event 1 must be an object."),
        ("POST", "/events/batch", [{}, {"payload": {}, "event_type": 7}], "`event_type` of event 1 must be a string."),
        ("POST", "/inbox/release", RECEIPTS | {"delay_seconds": -1}, "`delay_seconds` must be between 0 and 43200."),
        ("POST", "/inbox/release", RECEIPTS | {"delay_seconds": 1.5}, "`delay_seconds` must be a whole number."),
        (
            "PUT",
            "/inboxes/A",
            {},
            "`name` must be 1 to 63 characters of a-z, 0-9 and -, starting with a letter or digit.",
        ),
        ("POST", "/inbox/ack", {}, "`receipts` is required."),
        ("POST", "/inbox/ack", {"receipts": []}, "`receipts` must have 1 to 500 entries."),
        ("POST", "/inbox/ack", {"receipts": ["a", None]}, "Entry 1 of `receipts` must not be null."),
    ],
)
def test_detail_says_what_is_wrong(sample: Sample, method: str, path: str, body: Any, detail: str) -> None:
    options = {} if method == "GET" else {"json": body}
    document = sample.owner.request(method, path, **options).get_json()
    [error] = document["errors"]
    assert error["detail"] == detail
    assert document["detail"].startswith(detail)


def test_detail_of_several_errors_refers_to_their_list(sample: Sample) -> None:
    document = sample.owner.get("/inbox?limit=0&wait=21").get_json()
    assert document["detail"] == "`errors` lists what is wrong with the request."


def test_if_none_match_must_be_an_asterisk(sample: Sample) -> None:
    refused = sample.owner.put("/inboxes/new", {"If-None-Match": "x"}, json={})
    assert refused.get_json()["detail"] == "`If-None-Match` must be `*`."
