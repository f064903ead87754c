"""Encodes and decodes the bodies of calls that carry events, instead of botocore.

botocore looks up the shape of every attribute value, both ways, which takes more CPU than everything else about such a
call. It also needs each payload as a tree, while the store has its finished JSON. Except for bytes, an attribute value
is already JSON.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any

import orjson
from botocore.exceptions import ConnectionClosedError

from inbox.store.dynamodb.layout import Item

ItemsOf = Callable[[dict[str, Any]], Iterable[Item]]

_FIRST_ERROR_STATUS = 300
_CHECKSUM_HEADER = "x-amz-crc32"


def install(client: Any) -> None:
    """Replaces botocore's encoding where it is worth it. Signing, sending, retries and errors stay with botocore."""
    events = client.meta.events
    events.register("before-parse.dynamodb", _drop_truncated_checksum)
    events.register("after-call.dynamodb", _refuse_truncated_response)
    for operation in ("BatchWriteItem", "PutItem", "TransactWriteItems", *_DECODED_OPERATIONS):
        events.register(f"before-parameter-build.dynamodb.{operation}", _hide_from_botocore)
        events.register(f"before-call.dynamodb.{operation}", _encode)
    for operation, items_of in _DECODED_OPERATIONS.items():
        events.register(f"before-parse.dynamodb.{operation}", partial(_decode, items_of))


def _drop_truncated_checksum(response_dict: dict[str, Any], **_: Any) -> None:
    """Deletes a header that was cut with the response: botocore assumes that it is a number."""
    headers = response_dict["headers"]
    if not headers.get(_CHECKSUM_HEADER, "0").isdigit():
        del headers[_CHECKSUM_HEADER]


def _refuse_truncated_response(http_response: Any, **_: Any) -> None:
    """Raises an error. After its last attempt, botocore would return a truncated response as one without items."""
    size = len(http_response.content)
    # A response cut within its headers may have no length, and has no body. DynamoDB always sends one.
    if size == 0 or int(http_response.headers.get("content-length", size)) != size:
        raise ConnectionClosedError(endpoint_url=http_response.url)


def _hide_from_botocore(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context["document"] = params.copy()
    for name, value in params.items():
        # The names must stay: botocore's choice of an endpoint looks for table names that are ARNs.
        if isinstance(value, dict | list):
            params[name] = type(value)()


def _encode(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    params["body"] = orjson.dumps(context["document"], default=lambda raw: b64encode(raw).decode())


def _decode(
    items_of: ItemsOf, response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    if response_dict["status_code"] >= _FIRST_ERROR_STATUS:
        return
    try:
        response = orjson.loads(response_dict["body"])
    except orjson.JSONDecodeError:
        # Damaged: botocore notices by the checksum and repeats the call.
        return
    for item in items_of(response):
        for attribute in item.values():
            # Only top-level attributes are bytes: payloads that are maps contain none.
            if "B" in attribute:
                attribute["B"] = b64decode(attribute["B"])
    customized_response_dict.update(response)
    response_dict["body"] = b""


def _items_of_statements(response: dict[str, Any]) -> Iterable[Item]:
    """Returns items that were written, and items for which a condition failed."""
    parts = chain(*((part, part.get("Error", {})) for part in response.get("Responses", ())))
    return (part["Item"] for part in parts if "Item" in part)


_DECODED_OPERATIONS: dict[str, ItemsOf] = {
    "BatchExecuteStatement": _items_of_statements,
    "BatchGetItem": lambda response: chain(*response.get("Responses", {}).values()),
    "Query": lambda response: response.get("Items", ()),
}
