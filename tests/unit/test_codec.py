"""Bodies of calls equal those that botocore encodes. `inbox.store.dynamodb.codec`."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from inbox.domain.events import Status
from inbox.store.dynamodb import codec

ITEM: dict[str, Any] = {
    "sk": {"S": "Zoë"},
    "status": {"S": Status.UNDELIVERED},
    "deliveries": {"N": "12345678901234567890123456789012345678"},
    "claim_id": {"NULL": True},
    "fingerprint": {"B": b"\x00\xff"},
    "payload": {"M": {"B": {"S": "AA=="}, "many": {"L": [{"BOOL": True}, {"N": "0.1"}]}}},
}
ENCODED_ITEM = ITEM | {"fingerprint": {"B": "AP8="}}
KEY = {"sk": {"S": "Zoë"}}

CALLS: dict[str, dict[str, Any]] = {
    "batch_write_item": {"RequestItems": {"Events": [{"PutRequest": {"Item": ITEM}}]}},
    "batch_execute_statement": {"Statements": [{"Statement": "UPDATE", "Parameters": list(ITEM.values())}]},
    "batch_get_item": {"RequestItems": {"Events": {"Keys": [KEY], "ConsistentRead": True}}},
    "query": {"TableName": "Events", "ExpressionAttributeValues": {":all": ITEM["fingerprint"]}, "Limit": 3},
}
RESPONSES: dict[str, dict[str, Any]] = {
    "batch_write_item": {"UnprocessedItems": {"Events": [{"PutRequest": {"Item": ENCODED_ITEM}}]}},
    "batch_execute_statement": {
        "Responses": [
            {"TableName": "Events", "Item": ENCODED_ITEM},
            {"Error": {"Code": "ConditionalCheckFailed", "Message": "no", "Item": ENCODED_ITEM}},
            {"Error": {"Code": "ThrottlingError", "Message": "later"}},
        ]
    },
    "batch_get_item": {"Responses": {"Events": [ENCODED_ITEM, {}]}, "UnprocessedKeys": {"Events": {"Keys": [KEY]}}},
    "query": {"Items": [ENCODED_ITEM, KEY], "Count": 2, "ScannedCount": 2, "LastEvaluatedKey": KEY},
}


class _Client:
    """A client of boto3 that records requests and returns prepared responses."""

    def __init__(self) -> None:
        # With an account ID, botocore uses an endpoint for the account.
        session = boto3.Session("key", "secret", aws_account_id="123456789012", region_name="eu-central-1")
        self.boto3 = session.client("dynamodb", config=Config(retries={"mode": "standard"}, parameter_validation=False))
        self.boto3.meta.events.register("before-send.dynamodb.*", self._send)
        self.sent: list[Any] = []
        self.responses: list[tuple[int, dict[str, str], bytes]] = []

    def call(self, operation: str) -> dict[str, Any]:
        parameters = deepcopy(CALLS[operation])
        response: dict[str, Any] = getattr(self.boto3, operation)(**parameters)
        # The encoder must not change the parameters, because the store may send a batch again.
        assert parameters == CALLS[operation]
        return response

    def add_response(self, status: int, body: bytes, **headers: str) -> None:
        self.responses.append((status, headers, body))

    def _send(self, request: Any, **_: Any) -> AWSResponse:
        self.sent.append(request)
        status, headers, body = self.responses.pop(0)
        return AWSResponse(request.url, status, headers, _RawResponse(body))


class _RawResponse:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self) -> list[bytes]:
        return [self._body]


@pytest.fixture
def plain_client() -> Iterator[_Client]:
    client = _Client()
    yield client
    client.boto3.close()


@pytest.fixture
def codec_client() -> Iterator[_Client]:
    client = _Client()
    codec.install(client.boto3)
    yield client
    client.boto3.close()


@pytest.mark.parametrize("operation", CALLS)
def test_request_and_response_are_the_same_as_with_botocore(
    plain_client: _Client, codec_client: _Client, operation: str
) -> None:
    responses = []
    for client in (plain_client, codec_client):
        client.add_response(200, json.dumps(RESPONSES[operation]).encode())
        responses.append(client.call(operation))

    assert json.loads(codec_client.sent[0].body) == json.loads(plain_client.sent[0].body)
    assert codec_client.sent[0].url == plain_client.sent[0].url
    assert responses[0] == responses[1]


@pytest.mark.parametrize("operation", [each for each in CALLS if each != "batch_write_item"])
def test_botocore_encodes_and_decodes_no_attribute(
    codec_client: _Client, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("botocore encoded or decoded an attribute.")

    for name in ("serialize.JSONSerializer._serialize_type_blob", "parsers.BaseJSONParser._handle_blob"):
        monkeypatch.setattr(f"botocore.{name}", refuse)
    codec_client.add_response(200, json.dumps(RESPONSES[operation]).encode())
    assert codec_client.call(operation)


def test_botocore_reads_errors(codec_client: _Client) -> None:
    codec_client.add_response(400, b'{"__type": "com.amazonaws#ResourceNotFoundException", "message": "no table"}')
    with pytest.raises(ClientError, match="no table") as caught:
        codec_client.call("query")
    assert caught.value.response["Error"]["Code"] == "ResourceNotFoundException"


@pytest.mark.parametrize("damaged", [b'{"Items": [', b'{"Items": []}'])
def test_damaged_response_is_requested_again(
    codec_client: _Client, damaged: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    codec_client.add_response(200, damaged, **{"x-amz-crc32": "1"})
    codec_client.add_response(200, json.dumps(RESPONSES["query"]).encode())
    assert codec_client.call("query")["Items"] == [ITEM, KEY]
    assert len(codec_client.sent) == 2
