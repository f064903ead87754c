"""Several consumers at once, and one that is killed."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.consumers import Client, run_poll
from tests.service import Service, until

CONSUMERS = 3


def drain(client: Client, path: str, all_sent: threading.Event) -> list[str]:
    """Leases and acknowledges until all events are sent and acknowledged. Returns their IDs."""
    acknowledged_ids: list[str] = []
    while True:
        # Read before the poll, because an event sent during the poll needs another round.
        last_round = all_sent.is_set()
        events = client.get(f"{path}?mode=lease&limit=7")
        if events:
            acknowledged = client.acknowledge(events)
            assert acknowledged["lost"] == []
            acknowledged_ids += acknowledged["acknowledged"]
        elif last_round:
            return acknowledged_ids


def consume(client: Client, paths: list[str], count: int) -> tuple[list[str], list[list[str]]]:
    """Sends events to one consumer per path. Returns the sent IDs, and those that each consumer acknowledged."""
    all_sent = threading.Event()
    with ThreadPoolExecutor(len(paths)) as pool:
        consuming = [pool.submit(drain, client, path, all_sent) for path in paths]
        sent = [client.send({"n": number}) for number in range(count)]
        all_sent.set()
        return sent, [each.result() for each in consuming]


def test_each_named_inbox_receives_every_event(tenant: Client) -> None:
    for consumer in range(CONSUMERS):
        assert tenant.call("PUT", f"/inboxes/consumer-{consumer}").status_code == 201
    sent, acknowledged_ids = consume(tenant, [f"/inbox/consumer-{consumer}" for consumer in range(CONSUMERS)], 60)
    assert acknowledged_ids == [sent] * CONSUMERS
    assert [event["id"] for event in tenant.get("/inbox")] == sent


def test_consumers_of_one_inbox_share_its_events(tenant: Client) -> None:
    sent, acknowledged_ids = consume(tenant, ["/inbox"] * CONSUMERS, 100)
    assert Counter(event_id for each in acknowledged_ids for event_id in each) == Counter(sent)
    assert {event["status"] for event in tenant.get("/events?limit=500")} == {"delivered"}


def test_events_of_a_killed_consumer_return_when_the_lease_expires(service: Service) -> None:
    service.variables["INBOX_LEASE_SECONDS"] = "1"
    client = Client(service, service.create_key("acme"))
    service.start()
    # An event is larger than a pipe's buffer, so the command blocks while it prints, and has leased all events.
    sent = [client.send({"n": number, "filler": "x" * 200_000}) for number in range(3)]
    with run_poll(client, "--follow") as consumer:
        assert consumer.stdout is not None
        # The command prints after it has leased all events.
        assert consumer.stdout.read(1)
        consumer.kill()
    returned = lease_all(len(sent), client)
    assert [event["id"] for event in returned] == sent
    assert [event["deliveries"] for event in returned] == [2] * len(sent)
    assert client.acknowledge(returned) == {"acknowledged": sent, "lost": []}


def lease_all(count: int, client: Client) -> list[dict[str, Any]]:
    """Waits until `count` events are in the inbox, then leases and returns them."""
    until(lambda: len(client.get("/inbox?mode=peek")) == count)
    return client.get("/inbox?mode=lease&lease_seconds=60")
