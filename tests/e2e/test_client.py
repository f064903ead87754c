"""inbox.client against a running service, over an unreliable connection."""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from authorizer import apikey
from inbox.client import CallFailed, Client, NewEvent
from tests.service import Service


class LossyConnection(HTTPAdapter):
    """Loses the next responses of the service, or changes their status, body or location."""

    def __init__(self) -> None:
        super().__init__()
        self.responses_to_lose = 0
        self.statuses: list[int] = []
        self.body: bytes | None = None
        self.location: str | None = None

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        response = super().send(*arguments, **options)
        if self.responses_to_lose:
            self.responses_to_lose -= 1
            response.close()
            raise requests.ConnectionError
        if self.statuses:
            response.status_code = self.statuses.pop(0)
            response.headers["Retry-After"] = "7"
            if self.location is not None:
                response.headers["Location"] = self.location
            if self.body is not None:
                response.close()
                response._content = self.body
        return response


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list that gets each pause in seconds. The pauses are skipped."""
    made: list[int] = []
    monkeypatch.setattr("inbox.client.http_calls.sleep", made.append)
    return made


@pytest.fixture
def connection() -> LossyConnection:
    return LossyConnection()


@pytest.fixture
def client(running_service: Service, connection: LossyConnection) -> Iterator[Client]:
    """Yields a client of a new tenant."""
    key = running_service.create_key(f"t-{secrets.token_hex(8)}")
    with Client(f"{running_service.url}/", key) as client:
        client._session.mount(running_service.url, connection)
        yield client


class ObservedClient(Client):
    """Records the responses."""

    def __init__(self, other: Client, **options: Any) -> None:
        super().__init__(other._url, other._key, **options)
        self.responses: list[requests.Response] = []
        self._session.hooks["response"].append(lambda response, **_: self.responses.append(response))

    @property
    def sent_codings(self) -> list[str | None]:
        return [response.request.headers.get("Content-Encoding") for response in self.responses]


def numbers_of(events: list[Any]) -> list[int]:
    return [event["payload"]["n"] for event in events]


def send_numbered(client: Client, count: int) -> None:
    """Sends events with the numbers from 1 to `count` in `n`."""
    client.send_many([{"payload": {"n": n}} for n in range(1, count + 1)])


def test_compressed_responses_are_read(client: Client) -> None:
    with ObservedClient(client) as consumer:
        send_numbered(consumer, 100)
        assert numbers_of(consumer.poll()) == list(range(1, 101))
        assert consumer.responses[-1].headers["Content-Encoding"] == "gzip"
        assert consumer.sent_codings == [None, None]


def test_large_bodies_are_compressed_on_request(client: Client) -> None:
    with ObservedClient(client, compress=True) as producer:
        send_numbered(producer, 1)
        send_numbered(producer, 100)
        producer.send({"n": 0, "text": "x" * 2000})
        assert producer.sent_codings == [None, "gzip", "gzip"]
    assert numbers_of(client.poll(limit=500)) == [1, *range(1, 101), 0]


def test_batch_that_is_too_large_after_decompression_is_split(client: Client) -> None:
    with ObservedClient(client, compress=True) as producer:
        producer.send_many([{"payload": {"n": n, "text": "x" * 260_000}} for n in range(1, 71)])
        assert [response.status_code for response in producer.responses] == [413, 201, 201]
    assert numbers_of(client.peek(limit=2)) == [1, 2]


def test_only_an_explicit_idempotency_key_prevents_a_second_event(client: Client) -> None:
    assert client.send({"n": 1})["id"] != client.send({"n": 1})["id"]
    assert client.send({"n": 2}, idempotency_key="2") == client.send({"n": 2}, idempotency_key="2")
    assert numbers_of(client.poll()) == [1, 1, 2]


def test_many_events_are_sent_in_their_order(client: Client) -> None:
    events = [{"payload": {"n": n}, "event_type": f"t{n}"} for n in range(1, 502)]
    stored = client.send_many(events)  # type: ignore[arg-type]
    assert [event["event_type"] for event in stored] == [f"t{n}" for n in range(1, 502)]
    assert numbers_of(client.poll(limit=500) + client.poll()) == list(range(1, 502))
    assert client.send_many([]) == []


def test_events_that_are_too_large_for_one_request_are_sent_in_several(client: Client) -> None:
    large = [{"payload": {"n": n, "text": "x" * 100_000}} for n in range(200)]
    client.send_many(large)  # type: ignore[arg-type]
    assert numbers_of(client.poll(limit=500) + client.poll(limit=500)) == list(range(200))
    with pytest.raises(CallFailed) as refused:
        client.send_many([{"payload": {}}, {"payload": {"text": "x" * 262_144}}])
    assert (refused.value.status, refused.value.stored_before) == (413, 1)


def test_events_of_a_split_batch_can_be_sent_again_in_one_request(client: Client) -> None:
    small: list[NewEvent] = [{"payload": {"n": n}} for n in range(3)]
    large = NewEvent(payload={"text": "x" * 262_144})
    with pytest.raises(CallFailed) as refused:
        client.send_many([*small, large], idempotency_key="k")
    assert refused.value.stored_before == 3
    client.send_many([*small, {"payload": {"n": 3}}], idempotency_key="k")
    assert numbers_of(client.poll()) == [0, 1, 2, 3]


def test_corrected_events_can_be_sent_again_with_the_same_key(client: Client) -> None:
    events: list[NewEvent] = [{"payload": {"n": n}} for n in range(600)]
    broken = [*events[:550], NewEvent(payload={}, event_type="not a type"), *events[551:]]
    with pytest.raises(CallFailed) as refused:
        client.send_many(broken, idempotency_key=" Übernahme\n№" + 300 * "k")
    assert refused.value.stored_before == 500
    assert refused.value.problem["errors"][0]["pointer"] == "/50/event_type"
    assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(CallFailed, match=r"\n  /0/event_type: .*\n  /1/event_type: ") as refused:
        client.send_many([broken[550], broken[550]])
    assert refused.value.stored_before == 0
    client.send_many(events, idempotency_key=" Übernahme\n№" + 300 * "k")
    assert numbers_of(client.poll(limit=500) + client.poll(limit=500)) == list(range(600))


def test_leased_events_are_acknowledged_at_the_end_of_the_block(client: Client) -> None:
    send_numbered(client, 3)
    with client.lease(limit=2) as lease:
        assert numbers_of(lease.events) == [1, 2]
        assert numbers_of(client.peek()) == [3]
    assert lease.lost == []
    assert numbers_of(client.ask("GET", "/events", list, parameters={"status": "delivered"})) == [2, 1]
    assert numbers_of(client.poll()) == [3]


def test_block_that_raises_releases_unacknowledged_events(client: Client) -> None:
    send_numbered(client, 3)
    with pytest.raises(ZeroDivisionError), client.lease() as lease:  # noqa: PT012
        lease.acknowledge(lease.events[:1])
        raise ZeroDivisionError
    assert numbers_of(client.peek()) == [2, 3]
    with pytest.raises(ZeroDivisionError), client.lease(delay_seconds=60):
        raise ZeroDivisionError
    assert client.peek() == []


def list_numbers(client: Client, status: str) -> list[int]:
    return numbers_of(client.ask("GET", "/events", list, parameters={"status": status, "order": "oldest"}))


def test_consumer_gets_past_a_poison_event(client: Client) -> None:
    send_numbered(client, 4)
    handled: list[int] = []
    while client.peek():
        with suppress(ZeroDivisionError), client.lease() as lease:
            for event in lease:
                handled.append(event["payload"]["n"])
                1 // (handled[-1] - 1)
    # 10 is INBOX_MAX_DELIVERIES.
    assert handled == [1] * 10 + [2, 3, 4]
    assert (list_numbers(client, "dead"), list_numbers(client, "delivered")) == ([1], [2, 3, 4])


def test_only_the_current_event_fails_when_the_loop_raises(client: Client) -> None:
    send_numbered(client, 4)
    with pytest.raises(ZeroDivisionError), client.lease(delay_seconds=60) as lease:  # noqa: PT012
        for event in lease:
            1 // (event["payload"]["n"] - 2)
    assert (list_numbers(client, "delivered"), numbers_of(client.peek())) == ([1], [3, 4])
    with client.lease() as lease:
        assert [event["deliveries"] for event in lease] == [2, 2]
    assert (list_numbers(client, "delivered"), list_numbers(client, "undelivered")) == ([1, 3, 4], [2])


def test_iterating_acknowledges_an_event_before_the_next(client: Client) -> None:
    send_numbered(client, 3)
    with client.lease() as lease:
        delivered = [list_numbers(client, "delivered") for _ in lease]
        assert (delivered, lease.held) == ([[], [1], [1, 2]], [])
    assert list_numbers(client, "delivered") == [1, 2, 3]


def test_breaking_out_of_a_loop_releases_the_remaining_events(client: Client) -> None:
    send_numbered(client, 3)
    with client.lease() as lease:
        for event in lease:
            if event["payload"]["n"] == 2:
                break
    assert (list_numbers(client, "delivered"), numbers_of(client.peek())) == ([1, 2], [3])


def test_events_settled_in_the_loop_are_not_settled_again(client: Client) -> None:
    send_numbered(client, 4)
    with client.lease() as lease:
        for event in lease:
            if event["payload"]["n"] == 1:
                lease.release(lease.events[:2], failed=True)
            elif event["payload"]["n"] == 3:
                lease.acknowledge([event])
    assert lease.lost == []
    assert (list_numbers(client, "undelivered"), list_numbers(client, "delivered")) == ([1, 2], [3, 4])


def test_block_that_raises_fails_the_whole_batch(client: Client) -> None:
    send_numbered(client, 2)
    for _ in range(10):
        with pytest.raises(ZeroDivisionError), client.lease() as lease:  # noqa: PT012
            lease.acknowledge(lease.events[1:])
            raise ZeroDivisionError
    assert (list_numbers(client, "dead"), list_numbers(client, "delivered")) == ([1], [2])


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("one_by_one", [True, False])
def test_stop_does_not_count_as_failure(client: Client, error: type[BaseException], one_by_one: bool) -> None:
    send_numbered(client, 2)
    for _ in range(11):
        with pytest.raises(error), client.lease(delay_seconds=60) as lease:  # noqa: PT012
            if one_by_one:
                next(iter(lease))
            raise error
    assert numbers_of(client.peek()) == [1, 2]


def test_handled_event_that_cannot_be_acknowledged_has_not_failed(
    client: Client, connection: LossyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.retries = 0
    send_numbered(client, 1)
    calls: list[tuple[str, Any]] = []
    ask = client.ask

    def record_call(method: str, path: str, expected: type, document: Any = None, **details: Any) -> Any:
        calls.append((path, document))
        return ask(method, path, expected, document, **details)

    monkeypatch.setattr(client, "ask", record_call)
    with pytest.raises(CallFailed), client.lease() as lease:  # noqa: PT012
        for _ in lease:
            connection.statuses = [503]
    assert [path for path, _ in calls] == ["/inbox/default", "/inbox/ack", "/inbox/release"]
    assert calls[-1][1]["failed"] is False


def test_failed_release_with_a_lost_response_counts_once(client: Client, connection: LossyConnection) -> None:
    send_numbered(client, 1)
    for number in range(10):
        assert list_numbers(client, "dead") == []
        with client.lease() as lease:
            connection.responses_to_lose = 1 + number % 3
            lease.release(lease.events, failed=True)
        assert lease.lost == []
    assert list_numbers(client, "dead") == [1]


def test_settling_no_events_changes_nothing(client: Client) -> None:
    send_numbered(client, 2)
    with client.lease() as lease:
        lease.acknowledge([])
        lease.release([])
        lease.acknowledge(iter([]))
        assert lease.held == lease.events
        assert len(client.ask("GET", "/events", list, parameters={"status": "leased"})) == 2


def test_empty_lease_is_settled_without_requests(client: Client) -> None:
    with client.lease() as lease:
        lease.extend(60)
        assert lease.events == []


def test_exception_of_the_block_is_raised_even_if_the_release_fails(
    client: Client, connection: LossyConnection
) -> None:
    send_numbered(client, 1)
    with pytest.raises(ZeroDivisionError), client.lease():  # noqa: PT012
        connection.responses_to_lose = 1
        raise ZeroDivisionError
    assert connection.responses_to_lose == 0


def test_lease_is_released_and_extended_explicitly(client: Client) -> None:
    send_numbered(client, 2)
    with client.lease(lease_seconds=5) as lease:
        before = lease.events[1]["lease_expires_at"]
        for _ in range(2):
            lease.release(lease.events[:1])
        lease.extend(600)
        assert numbers_of(client.poll()) == [1]
        (held,) = client.ask("GET", "/events", list, parameters={"status": "leased"})
        assert held["lease_expires_at"] > before
    assert client.poll() == []


def test_events_with_an_expired_lease_are_reported_as_lost(client: Client) -> None:
    send_numbered(client, 2)
    with client.lease() as lease:
        first, second = lease.events
        client.ask("POST", "/inbox/release", dict, {"receipts": [first["receipt"]]})
        lease.extend(60)
        assert lease.lost == [first]
        client.ask("POST", "/inbox/release", dict, {"receipts": [second["receipt"]]})
    assert lease.lost == [first, second]
    assert numbers_of(client.poll()) == [1, 2]


def test_lost_responses_lose_and_duplicate_nothing(
    client: Client, connection: LossyConnection, pauses: list[int]
) -> None:
    connection.responses_to_lose = 3
    send_numbered(client, 2)
    connection.responses_to_lose = 1
    client.send({"n": 3})
    connection.responses_to_lose = 2
    assert numbers_of(client.poll(limit=1)) == [1]
    connection.responses_to_lose = 2
    with client.lease() as lease:
        assert numbers_of(lease.events) == [2, 3]
        connection.responses_to_lose = 1
    assert lease.lost == []
    assert client.poll() == []
    assert pauses == [1, 2, 4, 1, 1, 2, 1, 2, 1]


def test_retries_wait_for_retry_after(client: Client, connection: LossyConnection, pauses: list[int]) -> None:
    connection.statuses = [503, 429, 500]
    client.send({"n": 1})
    assert pauses == [7, 7, 7]
    assert numbers_of(client.poll()) == [1]


def test_retries_are_limited(client: Client, connection: LossyConnection, pauses: list[int]) -> None:
    connection.responses_to_lose = 4
    with pytest.raises(CallFailed, match=r"^No connection to \S+\.$") as failed:
        client.send({"n": 1})
    assert (failed.value.status, failed.value.may_pass, pauses) == (None, True, [1, 2, 4])


def test_replayed_events_are_polled_again(client: Client, connection: LossyConnection) -> None:
    send_numbered(client, 2)
    first, _ = client.poll()
    assert client.replay(first["id"])["status"] == "undelivered"
    assert numbers_of(client.poll()) == [1]
    assert client.replay_matching(status="delivered") == {"replayed": 2, "more": False}
    connection.statuses = [429]
    assert client.replay_matching() == {"replayed": 0, "more": False}
    assert numbers_of(client.poll()) == [1, 2]
    now = datetime.now(UTC)
    assert client.replay_matching(since=now)["replayed"] == 0
    assert client.replay_matching(since=now - timedelta(hours=1), until=first["timestamp"] + 1)["replayed"] >= 1
    assert client.replay_matching()["more"] is False
    assert numbers_of(client.poll()) == [1, 2]


def test_replay_is_not_retried_after_a_lost_response(
    client: Client, connection: LossyConnection, pauses: list[int]
) -> None:
    stored = client.send({"n": 1})
    client.poll()
    connection.responses_to_lose = 1
    with pytest.raises(CallFailed):
        client.replay(stored["id"])
    assert pauses == []


def test_refusals_are_raised_at_once_with_their_reason(
    client: Client, running_service: Service, pauses: list[int]
) -> None:
    with pytest.raises(CallFailed, match=r"^422 Invalid request: `event_type` must be") as refused:
        client.send({}, "not a type")
    assert (refused.value.status, refused.value.problem["type"]) == (422, "/problems/invalid-request")
    for inbox in ("none", "../me", "a?b"):
        with pytest.raises(CallFailed) as refused:
            client.poll(inbox)
        assert refused.value.status == 404
    with pytest.raises(CallFailed, match="401"), Client(running_service.url, apikey.mint()) as unknown_key_client:
        unknown_key_client.poll()
    for key in ("", " ", "ibx_secret\nkey", "ibx_secret\u200bkey"):
        with pytest.raises(ValueError, match=r"^The API key is empty or contains invalid characters\.$"):
            Client(running_service.url, key)
    with pytest.raises(ValueError, match="not JSON compliant"):
        client.send({"n": float("nan")})
    for url in ("inbox.example", "http://", "http://127.0.0.1:99999"):
        with pytest.raises(CallFailed, match=r"^Not a valid URL: \S+\.$"), Client(url, "key") as unreachable:
            unreachable.poll()
    assert pauses == []


def test_problems_of_other_servers_are_ignored(client: Client, connection: LossyConnection) -> None:
    for body in (b"", b"[]", b'{"errors": null}', b'{"status": 403, "title": "No", "errors": [{}]}', b"\xff"):
        connection.statuses, connection.body = [403], body
        with pytest.raises(CallFailed, match=r"^403 ") as refused:
            client.poll()
        assert refused.value.problem == {}


def test_redirects_are_reported_and_not_followed(client: Client, connection: LossyConnection) -> None:
    client.send({"n": 1})
    connection.statuses, connection.location = [301], "http://127.0.0.1:1/inbox"
    with pytest.raises(CallFailed, match=r"^301 The service redirects to http://127.0.0.1:1/inbox$"):
        client.peek()


def test_repeated_event_is_settled_once(client: Client) -> None:
    send_numbered(client, 300)
    with client.lease(limit=300) as lease:
        lease.acknowledge(lease.events + lease.events)
    assert lease.lost == []
