"""Generated payloads are returned exactly as they were sent over HTTP."""

from collections.abc import Callable
from typing import Any

import requests
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.json_documents import exact
from tests.service import Service, bearer
from tests.torture.json_strategies import DOCUMENTS, EDGES, Document

EVENTS_PER_EXAMPLE = 10


class RoundTrips:
    """Sends documents, polls them, and counts those that were returned unchanged."""

    def __init__(self, service: Service, key: str) -> None:
        self.returned = 0
        self._url = service.url
        self._session = requests.Session()
        self._session.headers.update(bearer(key) | {"Content-Type": "application/json"})

    def send(self, documents: list[Document]) -> dict[str, Any]:
        """Sends some documents alone and the others in a batch. Returns the expected payloads by event ID."""
        alone = [*documents[:3], *(each for each in documents[3:] if each.alone)]
        batched = [each for each in documents[3:] if not each.alone]
        ids = [self._call("POST", "/events", _format_body(each))["id"] for each in alone]
        if batched:
            batch = f"[{','.join(_format_body(each) for each in batched)}]"
            ids += [event["id"] for event in self._call("POST", "/events/batch", batch)]
        return dict(zip(ids, (exact(each.text) for each in [*alone, *batched]), strict=True))

    def check(self, sent: dict[str, Any]) -> None:
        """Peeks at all events, leases some and consumes the others, gets some by ID, and compares the payloads."""
        _compare(self._poll("mode=peek"), sent)
        events = self._call("GET", f"/inbox?mode=lease&limit={max(1, len(sent) // 2)}")
        receipts = ",".join(f'"{event["receipt"]}"' for event in events)
        leased = {event["id"]: event["payload"] for event in events}
        self._call("POST", "/inbox/ack", f'{{"receipts":[{receipts}]}}')
        _compare(leased | self._poll("mode=consume"), sent)
        some = list(sent)[::3]
        looked_up = {event_id: self._call("GET", f"/events/{event_id}")["payload"] for event_id in some}
        _compare(looked_up, {event_id: sent[event_id] for event_id in some})
        self.returned += len(sent)

    def _poll(self, parameters: str) -> dict[str, Any]:
        return {event["id"]: event["payload"] for event in self._call("GET", f"/inbox?{parameters}&limit=500")}

    def _call(self, method: str, path: str, body: str | None = None) -> Any:
        data = None if body is None else body.encode()
        response = self._session.request(method, self._url + path, data=data, timeout=60)
        assert response.ok, response.text
        return exact(response.content)


def _compare(received: dict[str, Any], sent: dict[str, Any]) -> None:
    assert received.keys() == sent.keys()
    for event_id in sent:
        # Not with a plain assert: pytest would take hours to describe how two documents of 256 KB differ.
        if received[event_id] != sent[event_id]:
            raise AssertionError(f"{str(sent[event_id])[:1000]} became {str(received[event_id])[:1000]}")


def _format_body(document: Document) -> str:
    return document.text if document.alone else f'{{"payload":{document.text}}}'


def test_payloads_come_back_exactly_as_sent(
    service_on_each_engine: Service,
    torture: bool,
    record_property: Callable[[str, object], None],
) -> None:
    minimum = 10_000 if torture else 200
    round_trips = RoundTrips(service_on_each_engine, service_on_each_engine.create_key("acme"))
    service_on_each_engine.start()

    @examples(
        max_examples=minimum // EVENTS_PER_EXAMPLE,
        deadline=None,
        database=None,
        derandomize=False,
        # No shrinking: a failed example leaves its events in the inbox, where every later example would fail too.
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(st.lists(DOCUMENTS, min_size=EVENTS_PER_EXAMPLE, max_size=EVENTS_PER_EXAMPLE))
    def check_documents(documents: list[Document]) -> None:
        round_trips.check(round_trips.send(documents))

    for start in range(0, len(EDGES), EVENTS_PER_EXAMPLE):
        round_trips.check(round_trips.send(EDGES[start : start + EVENTS_PER_EXAMPLE]))
    check_documents()
    record_property("documents", round_trips.returned)
    assert round_trips.returned >= minimum + len(EDGES)
