"""Reads templates, and resolves their parameters, conditions and references as CloudFormation does."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfnlint.decode import cfn_yaml

ENVIRONMENTS = ("dev", "sit", "prod")
TEMPLATES = Path(__file__).parents[2] / "deploy" / "cloudformation"
_ENVIRONMENTS_FOLDER = TEMPLATES.parent / "environments"

REGION = "af-south-1"
ACCOUNT = "123456789012"
_PSEUDO = {"AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws"}
_NO_VALUE = {"Ref": "AWS::NoValue"}

# Parameters that no environment file has, because their values are known only after other deployments.
EXAMPLE_PARAMETERS = {
    "AccessLogBucket": "",
    "CertificateArn": f"arn:aws:acm:{REGION}:{ACCOUNT}:certificate/1",
    "CodeBucket": "code",
    "CodeKey": "authorizer-1.zip",
    "Image": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/polling-inbox:1",
    "LoadBalancerFullName": "app/inbox/1",
    "LoadBalancerSubnets": "subnet-00000001,subnet-00000002",
    "ServiceLogGroup": "/inbox/service",
    "ServiceUrl": "https://inbox.example.com",
    "TaskSubnets": "subnet-00000001,subnet-00000002",
    "VpcId": "vpc-00000001",
}


@dataclass(frozen=True, slots=True)
class Stack:
    resources: dict[str, dict[str, Any]]

    def properties(self, logical_id: str) -> dict[str, Any]:
        properties: dict[str, Any] = self.resources[logical_id]["Properties"]
        return properties

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Returns the properties of each resource of a type by logical ID."""
        return {name: each["Properties"] for name, each in self.resources.items() if each["Type"] == kind}


def template_names() -> list[str]:
    return sorted(file.stem for file in TEMPLATES.glob("*.yaml"))


def template_path(name: str) -> Path:
    return TEMPLATES / f"{name}.yaml"


def read_template(name: str) -> dict[str, Any]:
    """Returns the template as plain dictionaries, with `!Ref` and the like in their long forms."""
    # Through JSON: cfn-lint's dictionaries keep line numbers, which take part in comparisons.
    document: dict[str, Any] = json.loads(json.dumps(cfn_yaml.load(str(template_path(name)))))
    return document


def read_environment(name: str) -> dict[str, str]:
    """Returns the parameters in an environment's file."""
    parameters: dict[str, str] = json.loads((_ENVIRONMENTS_FOLDER / f"{name}.json").read_text())
    return parameters


ALL_PARAMETERS = (
    EXAMPLE_PARAMETERS
    | read_environment("prod")
    | {"AnomalyMonitorArn": f"arn:aws:ce::{ACCOUNT}:anomalymonitor/1", "PrometheusSecurityGroup": "sg-00000001"}
)


def parameters_of(name: str, **given: str) -> dict[str, str]:
    """Returns a value for every parameter of the template: the given value, or its default."""
    declared = read_template(name)["Parameters"]
    return {key: str(given[key] if key in given else each["Default"]) for key, each in declared.items()}


def resolve(name: str, **given: str) -> Stack:
    template = read_template(name)
    resolver = _Resolver(template, parameters_of(name, **given))
    resources = {
        logical_id: resolver(each)
        for logical_id, each in template["Resources"].items()
        if "Condition" not in each or resolver.condition(each["Condition"])
    }
    return Stack(resources)


def resolve_all(name: str) -> Stack:
    """Returns the stack with every conditional resource, for tests that hold in any environment."""
    return resolve(name, **ALL_PARAMETERS)


class _Resolver:
    def __init__(self, template: dict[str, Any], parameters: dict[str, str]) -> None:
        self._conditions = template.get("Conditions", {})
        lists = {key for key, each in template["Parameters"].items() if "List" in each["Type"]}
        self._values: dict[str, Any] = _PSEUDO | {
            key: value.split(",") if key in lists else value for key, value in parameters.items()
        }

    def condition(self, name: str) -> bool:
        return bool(self(self._conditions[name]))

    def __call__(self, value: Any) -> Any:
        match value:
            case {"Ref": str(name)} if name in self._values:
                return self._values[name]
            case {"Fn::If": [name, then, otherwise]}:
                return self(then if self.condition(name) else otherwise)
            case {"Fn::Equals": [left, right]}:
                return self(left) == self(right)
            case {"Fn::Not": [operand]}:
                return not self(operand)
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([\w:]+)\}", lambda found: str(self._values.get(found[1], found[0])), text)
            case dict():
                items = ((key, self(each)) for key, each in value.items())
                return {key: each for key, each in items if each != _NO_VALUE}
            case list():
                return [each for each in map(self, value) if each != _NO_VALUE]
        return value
