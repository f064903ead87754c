"""The tables of `data.yaml` equal those that `inbox init` creates."""

import uuid
from typing import Any

import pytest

from inbox.settings import TABLE_PREFIX
from inbox.store.dynamodb.tables import DEFINITIONS, RECOVERY_DAYS, TTL_ATTRIBUTE
from tests.deploy import stacks
from tests.engines.aws import dynamodb_client
from tests.service import Service

COMPARED_PROPERTIES = ("AttributeDefinitions", "BillingMode", "GlobalSecondaryIndexes", "KeySchema")


def read_tables(**given: str) -> dict[str, dict[str, Any]]:
    parameters = stacks.read_environment("dev") | {"OwnTablePrefix": "", **given}
    return {
        table["TableName"]: table
        for table in stacks.resolve("data", **parameters).of_type("AWS::DynamoDB::GlobalTable").values()
    }


def test_table_definitions_equal_those_of_init() -> None:
    declared = {
        name: {key: table[key] for key in COMPARED_PROPERTIES if key in table} for name, table in read_tables().items()
    }
    assert declared == DEFINITIONS


@pytest.mark.parametrize("environment", stacks.ENVIRONMENTS)
def test_expiry_and_recovery_are_enabled_as_after_init(environment: str) -> None:
    for table in read_tables(**stacks.read_environment(environment)).values():
        assert table["TimeToLiveSpecification"] == {"AttributeName": TTL_ATTRIBUTE, "Enabled": True}
        for replica in table["Replicas"]:
            assert replica["PointInTimeRecoverySpecification"] == {
                "PointInTimeRecoveryEnabled": True,
                "RecoveryPeriodInDays": RECOVERY_DAYS,
            }


def test_template_accepts_the_same_prefixes_as_the_service() -> None:
    pattern = stacks.read_template("data")["Parameters"]["OwnTablePrefix"]["AllowedPattern"]
    assert pattern == TABLE_PREFIX


def test_service_runs_on_tables_of_the_template(dynamodb_local_url: str, service: Service) -> None:
    service.keep_in_dynamodb(dynamodb_local_url)
    client = dynamodb_client(dynamodb_local_url)
    prefix = service.variables["INBOX_TABLE_PREFIX"] = f"template-{uuid.uuid4().hex[:8]}-"
    for name, table in read_tables(OwnTablePrefix=prefix).items():
        assert name.startswith(prefix)
        client.create_table(
            TableName=name,
            **{key: table[key] for key in COMPARED_PROPERTIES if key in table},
            StreamSpecification={"StreamEnabled": True, **table["StreamSpecification"]},
        )
        client.update_time_to_live(TableName=name, TimeToLiveSpecification=table["TimeToLiveSpecification"])

    # `inbox init` accepts these tables and creates none.
    made = service.run("init")
    assert made.returncode == 0, made.stderr
    assert sorted(DEFINITIONS) == sorted(
        name.removeprefix(prefix) for name in client.list_tables()["TableNames"] if name.startswith(prefix)
    )
    assert service.create_key("acme").startswith("ibx_")
    service.start()
