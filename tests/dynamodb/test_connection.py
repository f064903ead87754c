"""Messages for errors of botocore and DynamoDB: each names its cause in words of this service."""

from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb.connection import Connection, translate_error
from tests.engines.aws import aws_environment

URL = "http://127.0.0.1:1"


def client_error(code: str, status: int = 400, **details: Any) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}, **details}, "GetItem")


def canceled_transaction(*reasons: str) -> ClientError:
    return client_error("TransactionCanceledException", CancellationReasons=[{"Code": each} for each in reasons])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NoCredentialsError(), "No AWS credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the host"),
        (client_error("ExpiredTokenException"), "AWS refuses the credentials."),
        (client_error("AccessDeniedException"), "AWS denies access to DynamoDB. Check the IAM permissions"),
        (client_error("ThrottlingException"), "DynamoDB throttles the requests"),
        (client_error("TransactionConflictException"), "Another request is writing the same item."),
        (canceled_transaction("None", "TransactionConflict"), "Another request is writing the same item."),
        (canceled_transaction("None", "ThrottlingError"), "DynamoDB throttles the requests"),
        (client_error("InternalServerError", 500), "DynamoDB returned no result (InternalServerError)."),
        (EndpointConnectionError(endpoint_url=URL), "DynamoDB cannot be reached."),
        (ConnectTimeoutError(endpoint_url=URL), "DynamoDB cannot be reached."),
        (ReadTimeoutError(endpoint_url=URL), "DynamoDB did not respond in time."),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_message_names_the_cause(error: Exception, message: str) -> None:
    translated = translate_error(error)
    assert isinstance(translated, StoreUnavailable)
    assert str(translated).startswith(message)
    assert type(error).__name__ not in str(translated)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("AWS_REGION", "", "AWS_REGION is not set, and DynamoDB needs it."),
        ("AWS_REGION", "no region!", "region_name 'no region!' doesn't match a supported format."),
        ("AWS_ENDPOINT_URL_DYNAMODB", "nowhere", "Invalid endpoint: nowhere."),
        ("AWS_PROFILE", "nobody", "The config profile (nobody) could not be found."),
        ("AWS_SECRET_ACCESS_KEY", "", "missing: AWS_SECRET_ACCESS_KEY."),
    ],
)
def test_invalid_aws_configuration_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    for each, valid in (aws_environment(URL) | {name: value}).items():
        monkeypatch.setenv(each, valid)
    with pytest.raises(SettingsError) as refused:
        Connection("", 1)
    assert str(refused.value).endswith(message)
