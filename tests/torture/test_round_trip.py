"""Made-up documents go in by HTTP and come out as they went in: number for number, character for character."""

from collections.abc import Callable
from typing import Any

import requests
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.json_documents import exact
from tests.service import Service, bearer
from tests.torture.json_strategies import DOCUMENTS, EDGES, Document

AT_ONCE = 10


class Tripper:
    """Sends documents and polls for them, and knows how many came back."""

    def __init__(self, service: Service, key: str) -> None:
        self.came_back = 0
        self._url = service.url
        self._session = requests.Session()
        self._session.headers.update(bearer(key) | {"Content-Type": "application/json"})

    def send(self, documents: list[Document]) -> dict[str, Any]:
        """Some by themselves and the others in a batch. What should come back, by the ids of the events."""
        alone = [*documents[:3], *(each for each in documents[3:] if each.alone)]
        together = [each for each in documents[3:] if not each.alone]
        ids = [self._ask("POST", "/events", _body(each))["id"] for each in alone]
        if together:
            batch = f"[{','.join(_body(each) for each in together)}]"
            ids += [event["id"] for event in self._ask("POST", "/events/batch", batch)]
        return dict(zip(ids, (exact(each.text) for each in [*alone, *together]), strict=True))

    def take_back(self, sent: dict[str, Any]) -> None:
        """By every way out: each event is seen in a peek, then leased or consumed, and looked up by its id."""
        _compare(self._poll("mode=peek"), sent)
        events = self._ask("GET", f"/inbox?mode=lease&limit={max(1, len(sent) // 2)}")
        receipts = ",".join(f'"{event["receipt"]}"' for event in events)
        taken = {event["id"]: event["payload"] for event in events}
        self._ask("POST", "/inbox/ack", f'{{"receipts":[{receipts}]}}')
        _compare(taken | self._poll("mode=consume"), sent)
        some = list(sent)[::3]
        looked_up = {event_id: self._ask("GET", f"/events/{event_id}")["payload"] for event_id in some}
        _compare(looked_up, {event_id: sent[event_id] for event_id in some})
        self.came_back += len(sent)

    def _poll(self, parameters: str) -> dict[str, Any]:
        return {event["id"]: event["payload"] for event in self._ask("GET", f"/inbox?{parameters}&limit=500")}

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        data = None if body is None else body.encode()
        answer = self._session.request(method, self._url + path, data=data, timeout=60)
        assert answer.ok, answer.text
        return exact(answer.content)


def _compare(came: dict[str, Any], sent: dict[str, Any]) -> None:
    assert came.keys() == sent.keys()
    for event_id in sent:
        # In words of its own: pytest would look for hours where two documents of 256 KB differ.
        if came[event_id] != sent[event_id]:
            raise AssertionError(f"{str(sent[event_id])[:1000]} became {str(came[event_id])[:1000]}")


def _body(document: Document) -> str:
    return document.text if document.alone else f'{{"payload":{document.text}}}'


def test_payloads_come_back_exactly_as_sent(
    on_each_engine: Service,
    torture: bool,
    record_property: Callable[[str, object], None],
) -> None:
    promised = 10_000 if torture else 200
    tripper = Tripper(on_each_engine, on_each_engine.create_key("acme"))
    on_each_engine.start()

    @examples(
        max_examples=promised // AT_ONCE,
        deadline=None,
        database=None,
        derandomize=False,
        # What failed is left in the inbox, where it would make the next one fail too: there is no way to a smaller one.
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(st.lists(DOCUMENTS, min_size=AT_ONCE, max_size=AT_ONCE))
    def there_and_back(documents: list[Document]) -> None:
        tripper.take_back(tripper.send(documents))

    for start in range(0, len(EDGES), AT_ONCE):
        tripper.take_back(tripper.send(EDGES[start : start + AT_ONCE]))
    there_and_back()
    record_property("documents", tripper.came_back)
    assert tripper.came_back >= promised + len(EDGES)
