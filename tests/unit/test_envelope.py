"""The fast path for plain events, which must give the same results as marshmallow."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import Schema, ValidationError

from inbox.api.schemas.events import Envelope
from inbox.services.publish import Submission

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(["", "order.created", "order created", "order.created\n", "ä", "x" * 128, "x" * 129, "k" * 256]),
    st.text(max_size=3),
    st.just({}),
    st.just({"payload": {}}),
    st.just([]),
)
DOCUMENTS = st.one_of(
    VALUES,
    st.dictionaries(st.sampled_from(["payload", "event_type", "idempotency_key", "other"]), VALUES),
)


def try_load(load: Callable[[], Any]) -> Any:
    """Returns the loaded value, or the error's messages."""
    try:
        return load()
    except ValidationError as error:
        return error.messages


@given(DOCUMENTS)
def test_event_loads_as_with_marshmallow(document: Any) -> None:
    envelope = Envelope()

    assert try_load(lambda: envelope.load(document)) == try_load(lambda: Schema.load(envelope, document))


@given(DOCUMENTS)
def test_event_of_a_batch_loads_as_with_marshmallow(document: Any) -> None:
    envelope = Envelope(many=True)

    assert try_load(lambda: envelope.load(document, many=False)) == try_load(
        lambda: Schema.load(envelope, document, many=False)
    )


@given(DOCUMENTS)
def test_raw_body_is_the_payload_of_any_object(document: Any) -> None:
    raw = Envelope().schema_for({"raw": "true"})

    expected = Submission(document) if isinstance(document, dict) else {"_schema": ["must be an object"]}
    assert try_load(lambda: raw.load(document)) == try_load(lambda: raw.load(document, many=False)) == expected


def test_plain_events_do_not_reach_marshmallow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Schema, "load")
    sent = {"event_type": "order.created", "payload": {"order": 1}, "idempotency_key": "one"}

    assert Envelope().load(sent) == Submission({"order": 1}, "order.created", "one")
    assert Envelope().load({"order": 1}) == Submission({"order": 1})
    assert Envelope(many=True).load(sent, many=False) == Submission({"order": 1}, "order.created", "one")
