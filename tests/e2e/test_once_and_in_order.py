"""Many producers and pollers at once: each event comes out once, each producer's in order."""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.service import Service, bearer

PRODUCERS, POLLERS = 8, 4


@pytest.fixture(params=["sqlite", "dynamodb_local"])
def service(request: pytest.FixtureRequest, new_service: Callable[[], Service]) -> Service:
    service = new_service()
    if request.param != "sqlite":
        service.keep_in_dynamodb(request.getfixturevalue(f"{request.param}_url"))
        assert service.run("init").returncode == 0
    return service


def test_each_event_comes_out_once_and_each_producers_in_order(service: Service, torture: bool) -> None:
    at_length = 10_000 if service.is_on_dynamodb else 100_000
    events = at_length if torture else 500
    key = service.create_key("acme")
    service.start()
    shares = [range(producer, events, PRODUCERS) for producer in range(PRODUCERS)]
    all_sent = threading.Event()

    def produce(producer: int) -> list[str]:
        with requests.Session() as session:
            session.headers.update(bearer(key))
            ids = []
            for number in shares[producer]:
                body = {"payload": {"producer": producer, "number": number}}
                answer = session.post(f"{service.url}/events", json=body, timeout=30)
                assert answer.status_code == 201, answer.text
                ids.append(answer.json()["id"])
            return ids

    def poll(limit: int) -> list[dict[str, object]]:
        with requests.Session() as session:
            session.headers.update(bearer(key))
            taken: list[dict[str, object]] = []
            while True:
                # Read before the poll: an event sent meanwhile is then left for the next one.
                last_round = all_sent.is_set()
                answer = session.get(f"{service.url}/inbox", params={"limit": limit}, timeout=30)
                assert answer.status_code == 200, answer.text
                taken += answer.json()
                if last_round and not answer.json():
                    return taken

    with ThreadPoolExecutor(PRODUCERS + POLLERS) as pool:
        polling = [pool.submit(poll, limit) for limit in (1, 7, 30, 500)]
        producing = [pool.submit(produce, producer) for producer in range(PRODUCERS)]
        sent = [event_id for each in producing for event_id in each.result()]
        all_sent.set()
        taken = [each.result() for each in polling]

    assert len(sent) == events
    counts = Counter(event["id"] for each in taken for event in each)
    assert [event_id for event_id, count in counts.items() if count > 1] == []
    assert set(counts) == set(sent)
    for each in taken:
        last = dict.fromkeys(range(PRODUCERS), -1)
        for event in each:
            payload = event["payload"]
            assert isinstance(payload, dict)
            assert payload["number"] > last[payload["producer"]]
            last[payload["producer"]] = payload["number"]


def test_one_producer_through_changing_workers_stays_in_order(service: Service) -> None:
    key = service.create_key("acme")
    service.start()
    for number in range(200):
        # A connection each, so that the workers take turns.
        answer = requests.post(f"{service.url}/events", json={"number": number}, headers=bearer(key), timeout=30)
        assert answer.status_code == 201

    taken = requests.get(f"{service.url}/inbox?limit=500", headers=bearer(key), timeout=30).json()
    assert [event["payload"]["number"] for event in taken] == list(range(200))
    assert [event["timestamp"] for event in taken] == sorted(event["timestamp"] for event in taken)
