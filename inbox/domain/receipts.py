"""Receipts as opaque, URL-safe text. Pure."""

import base64
import uuid

from inbox.domain.events import Receipt
from inbox.domain.inboxes import is_inbox_name

_ID_BYTES = 16


def receipt_text(receipt: Receipt) -> str:
    packed = uuid.UUID(receipt.event_id).bytes + bytes.fromhex(receipt.claim_id) + receipt.inbox.encode()
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def parse_receipt(text: str) -> Receipt | None:
    """Returns the receipt with exactly this text, or None if `text` is not a receipt."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        event_id, claim_id, inbox = packed[:_ID_BYTES], packed[_ID_BYTES : 2 * _ID_BYTES], packed[2 * _ID_BYTES :]
        receipt = Receipt(inbox.decode("ascii"), str(uuid.UUID(bytes=event_id)), claim_id.hex())
    except ValueError:
        return None
    # The decoder skips unknown characters and ignores the last bits, so other texts decode to the same receipt.
    return receipt if is_inbox_name(receipt.inbox) and receipt_text(receipt) == text else None
