"""What the templates create in each environment: backups, protection, regions, tags and the budget."""

from typing import Any

import pytest

from tests.deploy import stacks
from tests.deploy.stacks import REGION, Stack

HOURLY = "cron(0 * * * ? *)"
# Backup schedules, with the days for which each backup is kept.
BACKUPS = {
    "dev": [("cron(0 1 * * ? *)", "7")],
    "sit": [("cron(0 2 * * ? *)", "14")],
    "prod": [("cron(0 1 * * ? *)", "90"), (HOURLY, "2")],
}
DELETION_PROTECTION = {"dev": "false", "sit": "false", "prod": "true"}
SECOND_REGIONS = {"dev": [], "sit": [], "prod": ["eu-west-1"]}
BUDGET_DOLLARS = {"dev": "500", "sit": "1000", "prod": "5000"}
COMMON_TAGS = {"Environment", "Project", "Owner", "CostCenter", "ManagedBy", "Component", "Application"}
TAGS = {"dev": COMMON_TAGS, "sit": COMMON_TAGS, "prod": COMMON_TAGS | {"BackupPolicy", "DR", "LLD"}}

each_environment = pytest.mark.parametrize("environment", stacks.ENVIRONMENTS)


def resolve_data(environment: str) -> Stack:
    return stacks.resolve("data", **stacks.read_environment(environment))


def backup_rules(stack: Stack) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = stack.properties("BackupPlan")["BackupPlan"]["BackupPlanRule"]
    return rules


@each_environment
def test_tables_are_encrypted_streamed_protected_and_replicated(environment: str) -> None:
    tables = resolve_data(environment).of_type("AWS::DynamoDB::GlobalTable").values()
    assert len(tables) == 3
    for table in tables:
        assert table["BillingMode"] == "PAY_PER_REQUEST"
        assert table["SSESpecification"] == {"SSEEnabled": True, "SSEType": "KMS"}
        assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
        assert [each["Region"] for each in table["Replicas"]] == [REGION, *SECOND_REGIONS[environment]]
        for replica in table["Replicas"]:
            assert replica["DeletionProtectionEnabled"] == DELETION_PROTECTION[environment]
            tags = {tag["Key"]: tag["Value"] for tag in replica["Tags"]}
            assert set(tags) == TAGS[environment]
            assert all(tags.values())
            assert (tags["Environment"], tags["Component"]) == (environment, "dynamodb")
            assert tags.get("BackupPolicy") == ("hourly" if environment == "prod" else None)


@each_environment
def test_every_table_is_backed_up_on_schedule(environment: str) -> None:
    stack = resolve_data(environment)
    rules = backup_rules(stack)
    schedules = [(rule["ScheduleExpression"], rule["Lifecycle"]["DeleteAfterDays"]) for rule in rules]
    assert schedules == BACKUPS[environment]
    for rule in rules:
        copies = rule.get("CopyActions", [])
        assert [copy["DestinationBackupVaultArn"].split(":")[3] for copy in copies] == SECOND_REGIONS[environment]
        assert all(copy["Lifecycle"] == rule["Lifecycle"] for copy in copies)
    selected = stack.properties("BackupSelection")["BackupSelection"]["Resources"]
    assert selected == [{"Fn::GetAtt": [name, "Arn"]} for name in stack.of_type("AWS::DynamoDB::GlobalTable")]


def test_hourly_backups_can_be_kept_for_90_days() -> None:
    parameters = stacks.read_environment("prod") | {"BackupSchedule": HOURLY, "FrequentBackupSchedule": ""}
    (rule,) = backup_rules(stacks.resolve("data", **parameters))
    assert (rule["ScheduleExpression"], rule["Lifecycle"]) == (HOURLY, {"DeleteAfterDays": "90"})


def test_price_of_backups_in_the_readme_matches_the_backups_kept() -> None:
    copies_kept = sum(int(days) * (24 if schedule == HOURLY else 1) for schedule, days in BACKUPS["prod"])
    text = (stacks.TEMPLATES.parent / "README.md").read_text()
    assert f"are {copies_kept} whole copies of the tables: {copies_kept * 0.10:.2f} USD for each GB" in text
    assert f"| 0.7 | {copies_kept * 0.10:.2f}, and as much for the copies |" in text


def test_copies_go_to_the_vault_of_the_second_region() -> None:
    vault = stacks.resolve("second-region", **stacks.read_environment("prod")).properties("BackupVault")
    for rule in backup_rules(resolve_data("prod")):
        (copy,) = rule["CopyActions"]
        assert copy["DestinationBackupVaultArn"].rpartition(":")[2] == vault["BackupVaultName"]


@each_environment
def test_bill_and_replication_have_alarms(environment: str) -> None:
    parameters = stacks.read_environment(environment)
    budget = stacks.resolve("bill", **parameters).properties("Budget")
    assert budget["Budget"]["BudgetLimit"] == {"Amount": BUDGET_DOLLARS[environment], "Unit": "USD"}
    (alert,) = budget["NotificationsWithSubscribers"]
    assert (alert["Notification"]["NotificationType"], alert["Notification"]["Threshold"]) == ("ACTUAL", 80)
    assert alert["Subscribers"] == [{"SubscriptionType": "EMAIL", "Address": parameters["NotificationEmail"]}]
    monitoring = stacks.resolve("monitoring", **stacks.EXAMPLE_PARAMETERS | parameters)
    replicated = [
        dimension["Value"].removeprefix(parameters["TablePrefix"])
        for alarm in monitoring.of_type("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "ReplicationLatency"
        for dimension in alarm["Dimensions"]
        if dimension["Name"] == "TableName"
    ]
    assert replicated == (["Events", "TenantApiKeys", "Tenants"] if SECOND_REGIONS[environment] else [])
