"""Deploys the templates on an AWS emulator, and checks the created resources."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy import stacks
from tests.deploy.stacks import REGION
from tests.engines import aws, cloud

SECOND_REGION = stacks.read_environment("prod")["SecondRegion"]
# Resources that the emulator replaces by placeholders. cfn-lint checks them against AWS's schema.
PLACEHOLDERS = {
    "authorizer": set(),
    "backlog": set(),
    "bill": {"Budget", "CostAnomalies"},
    "data": {"BackupSelection"},
    "monitoring": {
        "ReadUnitsAlarm",
        "RegistryErrorsAlarm",
        "SystemErrorsAlarm",
        "ThrottlesAlarm",
        "WriteUnitsAlarm",
    },
    "policies": set(),
    "second-region": set(),
    "service-apprunner": {"AutoScaling", "Service"},
    "service-ecs": {"PrometheusIngress", "ScalableTarget", "ScaleOnCpu", "ScaleOnRequests"},
}


def region_of(stack: str) -> str:
    return {"second-region": SECOND_REGION, "bill": "us-east-1"}.get(stack, REGION)


class Account:
    """An AWS account with every template deployed for production."""

    def __init__(self, url: str) -> None:
        self._url = url

    def client(self, service: str, region: str = REGION) -> Any:
        return aws.client(service, self._url, region)

    def deploy(self, name: str) -> None:
        parameters = stacks.parameters_of(name, **stacks.ALL_PARAMETERS)
        cloudformation = self.client("cloudformation", region_of(name))
        cloudformation.create_stack(
            StackName=name,
            TemplateBody=stacks.template_path(name).read_text(),
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
        cloudformation.get_waiter("stack_create_complete").wait(
            StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )

    def resources(self, name: str) -> dict[str, tuple[str, str]]:
        """Returns the type and physical ID of each resource, by logical ID."""
        found = self.client("cloudformation", region_of(name)).describe_stack_resources(StackName=name)[
            "StackResources"
        ]
        return {each["LogicalResourceId"]: (each["ResourceType"], each["PhysicalResourceId"]) for each in found}

    def physical_id(self, name: str, logical_id: str) -> str:
        return self.resources(name)[logical_id][1]


@pytest.fixture(scope="module")
def account(cloud_tools: None) -> Iterator[Account]:  # noqa: ARG001 - skips the test if the tools are missing
    with cloud.running() as url:
        account = Account(url)
        account.client("s3").create_bucket(Bucket="code", CreateBucketConfiguration={"LocationConstraint": REGION})
        account.client("s3").put_object(Bucket="code", Key="authorizer-1.zip", Body=b"PK\x05\x06" + bytes(18))
        account.client("logs").create_log_group(logGroupName="/inbox/service")
        for name in stacks.template_names():
            account.deploy(name)
        yield account


@pytest.mark.parametrize("name", stacks.template_names())
def test_every_resource_is_created(account: Account, name: str) -> None:
    resources = account.resources(name)
    declared = stacks.resolve_all(name)
    assert {logical_id: kind for logical_id, (kind, _) in resources.items()} == {
        logical_id: each["Type"] for logical_id, each in declared.resources.items()
    }
    placeholders = {each for each, (_, physical_id) in resources.items() if physical_id.startswith("placeholder-")}
    assert placeholders == PLACEHOLDERS[name]


def test_alarms_have_the_thresholds_of_the_template(account: Account) -> None:
    expected = {
        account.physical_id("monitoring", each): (threshold, period)
        for each, threshold, period in (
            ("ServerErrorsAlarm", 5, 300),
            ("LatencyAlarm", 1000, 300),
            ("LoadBalancerErrorsAlarm", 5, 300),
            ("BacklogAlarm", 3600, 900),
            ("ReplicationAlarm", 5000, 60),
            ("KeysReplicationAlarm", 5000, 60),
            ("TenantsReplicationAlarm", 5000, 60),
        )
    }
    found = account.client("cloudwatch").describe_alarms(AlarmNames=list(expected))["MetricAlarms"]
    assert {each["AlarmName"]: (each["Threshold"], each["Period"]) for each in found} == expected
    topic = account.physical_id("monitoring", "Topic")
    assert all(each["AlarmActions"] == each["OKActions"] == [topic] for each in found)


def test_failed_deployment_is_rolled_back(account: Account) -> None:
    name = account.physical_id("service-ecs", "Service")
    (service,) = account.client("ecs").describe_services(cluster="inbox-prod", services=[name])["services"]
    deployment = service["deploymentConfiguration"]
    assert deployment["deploymentCircuitBreaker"] == {"enable": True, "rollback": True}
    alarms = [account.physical_id("service-ecs", each) for each in ("ServerErrorsAlarm", "UnhealthyTasksAlarm")]
    assert deployment["alarms"] == {"alarmNames": alarms, "enable": True, "rollback": True}
    assert (deployment["minimumHealthyPercent"], deployment["maximumPercent"]) == (100, 200)


def test_roles_of_tasks_have_one_policy_only(account: Account) -> None:
    for stack, role, policy in (
        ("service-ecs", "TaskRole", "inbox-prod-service"),
        ("service-apprunner", "InstanceRole", "inbox-prod-service"),
        ("backlog", "TaskRole", "inbox-prod-backlog"),
    ):
        name = account.physical_id(stack, role)
        iam = account.client("iam")
        attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
        assert [each["PolicyArn"].rpartition("/")[2] for each in attached] == [policy]
        assert iam.list_role_policies(RoleName=name)["PolicyNames"] == []
        assert attached[0]["PolicyArn"] in [physical_id for _, physical_id in account.resources("policies").values()]


def test_backup_plan_is_daily_and_hourly_and_copies_to_the_second_region(account: Account) -> None:
    plan = account.client("backup").get_backup_plan(BackupPlanId=account.physical_id("data", "BackupPlan"))[
        "BackupPlan"
    ]
    schedules = [(rule["ScheduleExpression"], rule["TargetBackupVaultName"]) for rule in plan["Rules"]]
    assert schedules == [("cron(0 1 * * ? *)", "inbox-prod"), ("cron(0 * * * ? *)", "inbox-prod")]
    vault = account.physical_id("second-region", "BackupVault")
    for rule in plan["Rules"]:
        (copy,) = rule["CopyActions"]
        assert copy["DestinationBackupVaultArn"].endswith(f":{SECOND_REGION}:000000000000:backup-vault:{vault}")


def test_dashboard_shows_every_metric(account: Account) -> None:
    body = account.client("cloudwatch").get_dashboard(DashboardName=f"inbox-prod-{REGION}")["DashboardBody"]
    widgets = json.loads(body)["widgets"]
    shown = {metric[1] for widget in widgets for metric in widget["properties"]["metrics"] if len(metric) > 1}
    assert shown >= {
        "ConsumedReadCapacityUnits",
        "ConsumedWriteCapacityUnits",
        "ReadThrottleEvents",
        "WriteThrottleEvents",
        "UserErrors",
        "ConditionalCheckFailedRequests",
        "OldestUndeliveredSeconds",
        "PostMilliseconds",
        "ServerErrors",
    }
