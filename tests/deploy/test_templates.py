"""Properties of the templates in every environment."""

import json
import re
from typing import Any

import pytest

from inbox.settings import read_settings
from tests.deploy import stacks
from tests.deploy.conftest import CHECKOUT
from tests.deploy.dockerfile import parse_stages
from tests.deploy.policies import read_policies
from tests.engines.aws import client

each_template = pytest.mark.parametrize("name", stacks.template_names())


@each_template
def test_template_names_no_account_region_or_owner(name: str) -> None:
    text = stacks.template_path(name).read_text()
    assert re.findall(r"\b\d{12}\b", text) == []
    assert re.findall(r"\b(?:af|ap|ca|cn|eu|il|me|mx|sa|us)-[a-z]+-\d\b", text) == []
    assert re.findall(r"[\w.]+@[\w.]+\.\w+", text) == []


@each_template
def test_environment_file_has_every_required_parameter(name: str) -> None:
    parameters = stacks.read_template(name)["Parameters"]
    needed = {key for key, each in parameters.items() if "Default" not in each}
    for environment in stacks.ENVIRONMENTS:
        assert needed <= stacks.EXAMPLE_PARAMETERS.keys() | stacks.read_environment(environment).keys()


def test_every_parameter_of_an_environment_is_used() -> None:
    used = {key for name in stacks.template_names() for key in stacks.read_template(name)["Parameters"]}
    for environment in stacks.ENVIRONMENTS:
        assert stacks.read_environment(environment).keys() <= used


@pytest.mark.parametrize(
    ("name", "resource"), [("service-ecs", "TaskDefinition"), ("backlog", "Task"), ("service-apprunner", "Service")]
)
def test_container_has_valid_settings_only(name: str, resource: str) -> None:
    properties = stacks.resolve_all(name).properties(resource)
    if name == "service-apprunner":
        image = properties["SourceConfiguration"]["ImageRepository"]["ImageConfiguration"]
        variables = {each["Name"]: each["Value"] for each in image["RuntimeEnvironmentVariables"]}
    else:
        (container,) = properties["ContainerDefinitions"]
        variables = {each["Name"]: each["Value"] for each in container["Environment"]}
        assert container["ReadonlyRootFilesystem"] is True
        assert container["User"] == "10001:10001"
    settings = read_settings(variables, on_terminal=False)
    assert (settings.sqlite_path, settings.table_prefix, settings.log_format) == (None, "prod-", "json")


def test_ecs_uses_the_health_check_of_the_image() -> None:
    (container,) = stacks.resolve_all("service-ecs").properties("TaskDefinition")["ContainerDefinitions"]
    command = parse_stages((CHECKOUT / "Dockerfile").read_text())[-1].only("HEALTHCHECK").command
    assert container["HealthCheck"]["Command"] == ["CMD", *command]


def test_lambda_can_only_read_keys_and_write_its_log() -> None:
    (policy,) = stacks.resolve_all("authorizer").properties("FunctionRole")["Policies"]
    tables, log = policy["PolicyDocument"]["Statement"]
    (of_file,) = read_policies()["authorizer.json"]["Statement"]
    arn_prefix = f"arn:aws:dynamodb:{stacks.REGION}:{stacks.ACCOUNT}:table/prod-"
    assert tables | {"Resource": []} == of_file | {"Resource": []}
    assert tables["Resource"] == [
        each.replace("arn:aws:dynamodb:*:*:table/*", arn_prefix) for each in of_file["Resource"]
    ]
    assert (log["Action"], log["Resource"]) == (
        ["logs:CreateLogStream", "logs:PutLogEvents"],
        {"Fn::GetAtt": ["FunctionLogGroup", "Arn"]},
    )


def test_service_scales_with_cpu_and_requests() -> None:
    stack = stacks.resolve_all("service-ecs")
    target = stack.properties("ScalableTarget")
    assert (target["MinCapacity"], target["MaxCapacity"]) == ("2", "10")
    policies = [
        each["TargetTrackingScalingPolicyConfiguration"]
        for each in stack.of_type("AWS::ApplicationAutoScaling::ScalingPolicy").values()
    ]
    assert [each["PredefinedMetricSpecification"]["PredefinedMetricType"] for each in policies] == [
        "ECSServiceAverageCPUUtilization",
        "ALBRequestCountPerTarget",
    ]
    assert [each["TargetValue"] for each in policies] == [60, "15000"]


def test_metrics_are_reachable_for_prometheus_only() -> None:
    for group in ("", "sg-00000002"):
        stack = stacks.resolve("service-ecs", **stacks.ALL_PARAMETERS | {"PrometheusSecurityGroup": group})
        rule = stack.properties("MetricsStayInside")
        assert rule["Conditions"] == [{"Field": "path-pattern", "PathPatternConfig": {"Values": ["/metrics"]}}]
        (action,) = rule["Actions"]
        assert (action["Type"], action["FixedResponseConfig"]["StatusCode"]) == ("fixed-response", "404")
        ingress_rules = stack.of_type("AWS::EC2::SecurityGroupIngress").values()
        assert [each["SourceSecurityGroupId"] for each in ingress_rules] == [group] * bool(group)


# Alarms on several metrics, with threshold, period and one metric. The emulator of test_emulator.py does not support
# them, moto does.
MULTIPLE_METRIC_ALARMS = {
    "ReadUnitsAlarm": (10_000, 60, "ConsumedReadCapacityUnits"),
    "WriteUnitsAlarm": (5_000, 60, "ConsumedWriteCapacityUnits"),
    "ThrottlesAlarm": (10, 300, "WriteThrottleEvents"),
    "SystemErrorsAlarm": (5, 300, "SystemErrors"),
    "RegistryErrorsAlarm": (5, 300, "SystemErrors"),
}


@pytest.mark.parametrize("name", MULTIPLE_METRIC_ALARMS)
def test_table_alarms_are_valid_and_have_the_planned_thresholds(name: str, moto_url: str) -> None:
    properties: dict[str, Any] = stacks.resolve_all("monitoring").properties(name)
    properties |= {"AlarmActions": [], "OKActions": [], "Threshold": float(properties["Threshold"])}
    cloudwatch = client("cloudwatch", moto_url)
    cloudwatch.put_metric_alarm(**properties)
    (alarm,) = cloudwatch.describe_alarms(AlarmNames=[properties["AlarmName"]])["MetricAlarms"]

    threshold, period, metric = MULTIPLE_METRIC_ALARMS[name]
    stats = [each["MetricStat"] for each in alarm["Metrics"] if "MetricStat" in each]
    assert (alarm["Threshold"], {each["Period"] for each in stats}) == (threshold, {period})
    assert metric in {each["Metric"]["MetricName"] for each in stats}
    tables = {each["Value"] for stat in stats for each in stat["Metric"]["Dimensions"] if each["Name"] == "TableName"}
    assert tables
    assert tables <= {"prod-Events", "prod-TenantApiKeys", "prod-Tenants"}
    # CloudWatch accepts up to 10 metrics per alarm.
    assert len(stats) <= 10
    (returned,) = [each for each in alarm["Metrics"] if each.get("ReturnData", True)]
    assert returned["Id"] == "alarm_value"


def test_every_table_has_alarms() -> None:
    stack = stacks.resolve_all("monitoring")
    watched = {
        dimension["Value"]
        for name in MULTIPLE_METRIC_ALARMS
        for each in stack.properties(name)["Metrics"]
        for dimension in each.get("MetricStat", {}).get("Metric", {}).get("Dimensions", [])
        if dimension["Name"] == "TableName"
    }
    assert watched == {"prod-Events", "prod-TenantApiKeys", "prod-Tenants"}


def test_dashboard_is_json() -> None:
    body = json.loads(stacks.resolve_all("monitoring").properties("Dashboard")["DashboardBody"])
    assert all(widget["properties"]["region"] == stacks.REGION for widget in body["widgets"])
