"""Several consumers, and some that die: each inbox gets everything, and nothing is lost or handed out twice."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.consumers import ALL_SCOPES, Client, polling
from tests.service import Service

CONSUMERS = 3


def drain(client: Client, path: str, all_sent: threading.Event) -> list[str]:
    """Leases and acknowledges until there is nothing more to come."""
    taken: list[str] = []
    while True:
        # Read before the poll: an event sent meanwhile is then left for the next one.
        last_round = all_sent.is_set()
        events = client.get(f"{path}?mode=lease&limit=7")
        if events:
            acknowledged = client.acknowledge(events)
            assert acknowledged["lost"] == []
            taken += acknowledged["acknowledged"]
        elif last_round:
            return taken


def consume(client: Client, paths: list[str], events: int) -> tuple[list[str], list[list[str]]]:
    """What was sent, and what each of the consumers got."""
    all_sent = threading.Event()
    with ThreadPoolExecutor(len(paths)) as pool:
        consuming = [pool.submit(drain, client, path, all_sent) for path in paths]
        sent = [client.send({"n": number}) for number in range(events)]
        all_sent.set()
        return sent, [each.result() for each in consuming]


def test_consumers_with_an_inbox_each_all_get_every_event(service: Service) -> None:
    client = Client(service, service.create_key("acme", *ALL_SCOPES))
    service.start()
    for consumer in range(CONSUMERS):
        assert client.call("PUT", f"/inboxes/consumer-{consumer}").status_code == 201
    sent, taken = consume(client, [f"/inbox/consumer-{consumer}" for consumer in range(CONSUMERS)], 60)
    assert taken == [sent] * CONSUMERS
    assert [event["id"] for event in client.get("/inbox")] == sent


def test_consumers_of_one_inbox_share_its_events(service: Service) -> None:
    client = Client(service, service.create_key("acme"))
    service.start()
    sent, taken = consume(client, ["/inbox"] * CONSUMERS, 100)
    assert Counter(event_id for each in taken for event_id in each) == Counter(sent)
    assert {event["status"] for event in client.get("/events?limit=500")} == {"delivered"}


def test_a_consumer_killed_between_lease_and_acknowledgement_loses_nothing(service: Service) -> None:
    service.variables["INBOX_LEASE_SECONDS"] = "1"
    client = Client(service, service.create_key("acme"))
    service.start()
    # More than a pipe holds, so that it hangs with its leases in the middle of printing.
    sent = [client.send({"n": number, "filler": "x" * 200_000}) for number in range(3)]
    with polling(client, "--follow") as consumer:
        while len(client.get("/events?status=leased")) < len(sent):
            time.sleep(0.05)
        consumer.kill()
    again = _until(len(sent), client)
    assert [event["id"] for event in again] == sent
    assert [event["deliveries"] for event in again] == [2] * len(sent)
    assert client.acknowledge(again) == {"acknowledged": sent, "lost": []}


def _until(count: int, client: Client) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if len(client.get("/inbox?mode=peek")) == count:
            return client.get("/inbox?mode=lease&lease_seconds=60")
        time.sleep(0.05)
    raise AssertionError("The leases did not run out.")
