"""The permissions in the IAM policies, written as in calls.json: `Action table` or `Action table/index/name`."""

import json
from collections.abc import Iterator
from typing import Any

from tests.deploy import stacks
from tests.deploy.recorded_calls import read_known_permissions

PROGRAMS = {
    "ServicePolicy": ("service",),
    "OperatorPolicy": ("operator", "backlog"),
    "BacklogPolicy": ("backlog",),
    "authorizer.json": ("authorizer",),
}
"""Policy → the programs that use it."""

_TEMPLATE = stacks.read_template("policies")
_TEMPLATE_ARN = "arn:${AWS::Partition}:dynamodb:*:${AWS::AccountId}:table/${TablePrefix}"
_ANY_PREFIX_ARN = "arn:aws:dynamodb:*:*:table/*"


def read_policies() -> dict[str, dict[str, Any]]:
    """Returns the policies of the template by logical ID, and that of the Lambda by its file name."""
    of_template = {
        name: resource["Properties"]["PolicyDocument"]
        for name, resource in _TEMPLATE["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    authorizer = stacks.TEMPLATES.parent / "iam" / "authorizer.json"
    return of_template | {authorizer.name: json.loads(authorizer.read_text())}


def find_differences(name: str, document: dict[str, Any]) -> list[str]:
    """Returns a line for each permission that the policy lacks, or has and does not need."""
    allowed = {permission for statement in document["Statement"] for permission in list_permissions(statement)}
    known = read_known_permissions()
    needed = {permission for program in PROGRAMS[name] for permission in known.get(program, ())}
    return [f"missing: {permission}" for permission in sorted(needed - allowed)] + [
        f"superfluous: {permission}" for permission in sorted(allowed - needed)
    ]


def list_permissions(statement: dict[str, Any]) -> Iterator[str]:
    """Yields each permission. A wildcard is a permission that no call needs, so it counts as superfluous."""
    assert statement.keys() == {"Sid", "Effect", "Action", "Resource"}
    assert statement["Effect"] == "Allow"
    for action in as_list(statement["Action"]):
        for resource in as_list(statement["Resource"]):
            yield f"{action.removeprefix('dynamodb:')} {_table_name(resource)}"


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _table_name(resource: Any) -> str:
    """Returns `table` or `table/index/name`, without the prefix of the table."""
    match resource:
        case {"Fn::Sub": str(arn)} if arn.startswith(_TEMPLATE_ARN):
            return arn.removeprefix(_TEMPLATE_ARN)
        case str(arn):
            return arn.removeprefix(_ANY_PREFIX_ARN)
    raise ValueError(f"Unknown resource: {resource}")
