"""AWS settings and clients for an engine on this machine."""

from typing import Any

import boto3

_REGION = "eu-central-1"


def aws_environment(url: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL_DYNAMODB": url,
        "AWS_REGION": _REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }


def client(service: str, url: str, region: str = _REGION) -> Any:
    return boto3.client(
        service, endpoint_url=url, region_name=region, aws_access_key_id="test", aws_secret_access_key="test"
    )


def dynamodb_client(url: str) -> Any:
    return client("dynamodb", url)
