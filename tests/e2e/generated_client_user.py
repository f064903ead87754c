"""Uses the API through a generated client only: sends the payload in its argument, and prints responses as JSON."""

import json
import os
import sys
from typing import Any

from generated_inbox import AuthenticatedClient
from generated_inbox.api.events import send_batch, send_event
from generated_inbox.api.inbox import acknowledge, poll
from generated_inbox.models import Envelope, EnvelopePayload, PollMode, RawEvent, ReceiptsBody

URL, KEY = os.environ["INBOX_URL"], os.environ["INBOX_KEY"]


def connect(key: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=URL, token=key, raise_on_unexpected_status=True)


def make_envelope(payload: dict[str, Any]) -> Envelope:
    return Envelope(payload=EnvelopePayload.from_dict(payload), event_type="order.created")


with connect(KEY) as client:
    sent = send_event.sync(client=client, body=make_envelope(json.loads(sys.argv[1])))
    batch = send_batch.sync(client=client, body=[make_envelope({"n": 2}), RawEvent.from_dict({"n": 3})])
    peeked = poll.sync(client=client, mode=PollMode.PEEK)
    leased = poll.sync(client=client, mode=PollMode.LEASE, limit=1, lease_seconds=300)
    settled = acknowledge.sync(client=client, body=ReceiptsBody(receipts=[event.receipt for event in leased]))
    polled = poll.sync_detailed(client=client)
    refused = poll.sync(client=client, limit=0)
with connect("no key") as client_without_key:
    unauthorized = poll.sync(client=client_without_key)

documents = {
    "sent": [each.to_dict() for each in (sent, *batch)],
    "peeked": [each.to_dict() for each in peeked],
    "leased": [each.to_dict() for each in leased],
    "settled": settled.to_dict(),
    "polled": [each.to_dict() for each in polled.parsed],
    "more": polled.headers["Inbox-More"],
    "refused": refused.to_dict(),
    "unauthorized": unauthorized.to_dict(),
    "kinds": sorted({type(each).__name__ for each in (sent, *peeked, settled, refused, unauthorized)}),
}
print(json.dumps(documents))  # noqa: T201 - the test reads it
