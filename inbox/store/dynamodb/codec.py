"""The bodies of calls that carry events, written and read whole.

An attribute value is JSON as it stands, but for bytes. botocore looks up the shape of each one all the same, both ways,
and that takes more CPU than everything else about such a call. It also needs each payload as a tree, where we have its
finished JSON.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any

import orjson
from botocore.exceptions import ConnectionClosedError

from inbox.store.dynamodb.layout import Item

ItemsIn = Callable[[dict[str, Any]], Iterable[Item]]

_FIRST_ERROR = 300
_CHECKSUM = "x-amz-crc32"


def take_over(client: Any) -> None:
    """From botocore, where it is worth it. Signing, sending, repeating and all errors stay with botocore."""
    events = client.meta.events
    events.register("before-parse.dynamodb", _drop_half_a_checksum)
    events.register("after-call.dynamodb", _refuse_half)
    for operation in ("BatchWriteItem", "PutItem", *_READ_WHOLE):
        events.register(f"before-parameter-build.dynamodb.{operation}", _keep_from_botocore)
        events.register(f"before-call.dynamodb.{operation}", _write)
    for operation, items_in in _READ_WHOLE.items():
        events.register(f"before-parse.dynamodb.{operation}", partial(_read, items_in))


def _drop_half_a_checksum(response_dict: dict[str, Any], **_: Any) -> None:
    """An answer that was cut in that line of its head. botocore takes for granted that there is a number in it."""
    headers = response_dict["headers"]
    if not headers.get(_CHECKSUM, "0").isdigit():
        del headers[_CHECKSUM]


def _refuse_half(http_response: Any, **_: Any) -> None:
    """What was cut on its way. botocore passes that on as an answer without items once it has tried often enough."""
    size = len(http_response.content)
    # Where it was cut in its head there may be no length, and no body follows. DynamoDB always sends one.
    if size == 0 or int(http_response.headers.get("content-length", size)) != size:
        raise ConnectionClosedError(endpoint_url=http_response.url)


def _keep_from_botocore(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context["document"] = params.copy()
    for name, value in params.items():
        # Empty, but there: the choice of an endpoint looks at the names of tables, in case they are ARNs.
        if isinstance(value, dict | list):
            params[name] = type(value)()


def _write(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    params["body"] = orjson.dumps(context["document"], default=_as_text)


def _as_text(raw: bytes) -> str:
    return b64encode(raw).decode()


def _read(items_in: ItemsIn, response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    if response_dict["status_code"] >= _FIRST_ERROR:
        return
    try:
        answer = orjson.loads(response_dict["body"])
    except orjson.JSONDecodeError:
        # Damaged on its way. botocore has a checksum for that, and asks again.
        return
    for item in items_in(answer):
        for attribute in item.values():
            # Only as an attribute of its own: payloads that are maps have no bytes in them.
            if "B" in attribute:
                attribute["B"] = b64decode(attribute["B"])
    customized_response_dict.update(answer)
    response_dict["body"] = b""


def _in_statements(answer: dict[str, Any]) -> Iterable[Item]:
    """Those that were written, and those that a condition has met."""
    parts = chain(*((response, response.get("Error", {})) for response in answer.get("Responses", ())))
    return (part["Item"] for part in parts if "Item" in part)


_READ_WHOLE: dict[str, ItemsIn] = {
    "BatchExecuteStatement": _in_statements,
    "BatchGetItem": lambda answer: chain(*answer.get("Responses", {}).values()),
    "Query": lambda answer: answer.get("Items", ()),
}
