"""Every cell of the environment matrix, in what each environment gets."""

from typing import Any

import pytest

from tests.deploy import stacks, templates
from tests.deploy.stacks import REGION, Stack

HOURLY = "cron(0 * * * ? *)"
# environment → backup schedules with the days each backup is kept, deletion protection, regions, budget
BACKUPS = {
    "dev": [("cron(0 1 * * ? *)", "7")],
    "sit": [("cron(0 2 * * ? *)", "14")],
    "prod": [("cron(0 1 * * ? *)", "90"), (HOURLY, "2")],
}
PROTECTED = {"dev": "false", "sit": "false", "prod": "true"}
SECOND_REGION = {"dev": [], "sit": [], "prod": ["eu-west-1"]}
BUDGET = {"dev": "500", "sit": "1000", "prod": "5000"}
EVERYWHERE = {"Environment", "Project", "Owner", "CostCenter", "ManagedBy", "Component", "Application"}
TAGS = {"dev": EVERYWHERE, "sit": EVERYWHERE, "prod": EVERYWHERE | {"BackupPolicy", "DR", "LLD"}}

each_environment = pytest.mark.parametrize("environment", stacks.ENVIRONMENTS)


def data(environment: str) -> Stack:
    return stacks.filled_in("data", **stacks.environment(environment))


def tables(environment: str) -> list[dict[str, Any]]:
    found = list(data(environment).of_type("AWS::DynamoDB::GlobalTable").values())
    assert len(found) == 3
    return found


def replicas(environment: str) -> list[dict[str, Any]]:
    return [replica for table in tables(environment) for replica in table["Replicas"]]


@each_environment
def test_tables_are_on_demand_and_encrypted_with_a_key_of_kms(environment: str) -> None:
    for table in tables(environment):
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}


@each_environment
def test_streams_have_old_and_new_images(environment: str) -> None:
    for table in tables(environment):
        assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}


@each_environment
def test_any_second_of_the_last_35_days_can_be_restored(environment: str) -> None:
    for replica in replicas(environment):
        recovery = replica["PointInTimeRecoverySpecification"]
        assert recovery == {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 35}


@each_environment
def test_only_production_is_protected_from_deletion(environment: str) -> None:
    assert {replica["DeletionProtectionEnabled"] for replica in replicas(environment)} == {PROTECTED[environment]}


@each_environment
def test_only_production_has_a_replica_in_a_second_region(environment: str) -> None:
    for table in tables(environment):
        assert [each["Region"] for each in table["Replicas"]] == [REGION, *SECOND_REGION[environment]]


def backup_rules(stack: Stack) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = stack.properties("BackupPlan")["BackupPlan"]["BackupPlanRule"]
    return rules


@each_environment
def test_backups_are_made_as_often_and_kept_as_long_as_the_matrix_says(environment: str) -> None:
    rules = backup_rules(data(environment))
    kept = [(rule["ScheduleExpression"], rule["Lifecycle"]["DeleteAfterDays"]) for rule in rules]
    assert kept == BACKUPS[environment]
    for rule in rules:
        copies = rule.get("CopyActions", [])
        assert [copy["DestinationBackupVaultArn"].split(":")[3] for copy in copies] == SECOND_REGION[environment]
        assert all(copy["Lifecycle"] == rule["Lifecycle"] for copy in copies)


def test_hourly_backups_can_be_kept_for_90_days() -> None:
    parameters = stacks.environment("prod") | {"BackupSchedule": HOURLY, "FrequentBackupSchedule": ""}
    (rule,) = backup_rules(stacks.filled_in("data", **parameters))
    assert (rule["ScheduleExpression"], rule["Lifecycle"]) == (HOURLY, {"DeleteAfterDays": "90"})


def test_stated_price_of_backups_is_that_of_the_copies_kept() -> None:
    kept = sum(int(days) * (24 if schedule == HOURLY else 1) for schedule, days in BACKUPS["prod"])
    text = (templates.FOLDER.parent / "README.md").read_text()
    assert f"are {kept} whole copies of the tables: {kept * 0.10:.2f} USD for each GB" in text
    assert f"| 0.7 | {kept * 0.10:.2f}, and as much for the copies |" in text


@each_environment
def test_every_table_is_backed_up(environment: str) -> None:
    stack = data(environment)
    selected = stack.properties("BackupSelection")["BackupSelection"]["Resources"]
    assert selected == [{"Fn::GetAtt": [name, "Arn"]} for name in stack.of_type("AWS::DynamoDB::GlobalTable")]


def test_copies_go_to_the_vault_that_the_second_region_has() -> None:
    vault = stacks.filled_in("second-region", **stacks.environment("prod")).properties("BackupVault")
    for rule in backup_rules(data("prod")):
        (copy,) = rule["CopyActions"]
        assert copy["DestinationBackupVaultArn"].rpartition(":")[2] == vault["BackupVaultName"]


@each_environment
def test_every_replica_has_the_tags_of_its_environment(environment: str) -> None:
    for replica in replicas(environment):
        tags = {tag["Key"]: tag["Value"] for tag in replica["Tags"]}
        assert set(tags) == TAGS[environment]
        assert all(tags.values())
        assert (tags["Environment"], tags["Component"]) == (environment, "dynamodb")
        assert tags.get("BackupPolicy") == ("hourly" if environment == "prod" else None)


@each_environment
def test_the_bill_is_watched_from_80_percent_of_the_budget_on(environment: str) -> None:
    budget = stacks.filled_in("bill", **stacks.environment(environment)).properties("Budget")
    assert budget["Budget"]["BudgetLimit"] == {"Amount": BUDGET[environment], "Unit": "USD"}
    (alert,) = budget["NotificationsWithSubscribers"]
    assert alert["Notification"] == {
        "NotificationType": "ACTUAL",
        "ComparisonOperator": "GREATER_THAN",
        "Threshold": 80,
        "ThresholdType": "PERCENTAGE",
    }
    assert alert["Subscribers"] == [
        {"SubscriptionType": "EMAIL", "Address": stacks.environment(environment)["NotificationEmail"]}
    ]


@each_environment
def test_replication_is_watched_where_there_is_any(environment: str) -> None:
    monitoring = stacks.filled_in("monitoring", **stacks.MADE_UP | stacks.environment(environment))
    assert ("ReplicationAlarm" in monitoring.resources) == bool(SECOND_REGION[environment])
