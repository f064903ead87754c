"""The rights in the IAM policies, written as in calls.json: `Action table` or `Action table/index/name`."""

import json
from collections.abc import Iterator
from typing import Any

from tests.deploy import templates
from tests.deploy.recorded_calls import known_calls

PROGRAMS = {
    "ServicePolicy": ("service",),
    "OperatorPolicy": ("operator", "backlog"),
    "BacklogPolicy": ("backlog",),
    "authorizer.json": ("authorizer",),
}
"""Policy → the programs that have it."""

_TEMPLATE = templates.read(templates.FOLDER / "policies.yaml")
_OF_TEMPLATE = "arn:${AWS::Partition}:dynamodb:*:${AWS::AccountId}:table/${TablePrefix}"
_ANY_PREFIX = "arn:aws:dynamodb:*:*:table/*"


def documents() -> dict[str, dict[str, Any]]:
    """Returns the policies of the template by logical ID, and that of the Lambda by its file name."""
    of_template = {
        name: resource["Properties"]["PolicyDocument"]
        for name, resource in _TEMPLATE["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    authorizer = templates.FOLDER.parent / "iam" / "authorizer.json"
    return of_template | {authorizer.name: json.loads(authorizer.read_text())}


def differences(name: str, document: dict[str, Any]) -> list[str]:
    """Returns a line for each right that the policy lacks, or has without need."""
    allowed = {right for statement in document["Statement"] for right in rights_in(statement)}
    known = known_calls()
    needed = {right for program in PROGRAMS[name] for right in known.get(program, ())}
    return [f"missing: {right}" for right in sorted(needed - allowed)] + [
        f"superfluous: {right}" for right in sorted(allowed - needed)
    ]


def rights_in(statement: dict[str, Any]) -> Iterator[str]:
    """Yields each right. A wildcard is a right that no call needs, so it counts as superfluous."""
    assert statement.keys() == {"Sid", "Effect", "Action", "Resource"}
    assert statement["Effect"] == "Allow"
    for action in as_list(statement["Action"]):
        for resource in as_list(statement["Resource"]):
            yield f"{action.removeprefix('dynamodb:')} {_name(resource)}"


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _name(resource: Any) -> str:
    """Returns the table, and index, without prefix."""
    match resource:
        case {"Fn::Sub": str(arn)} if arn.startswith(_OF_TEMPLATE):
            return arn.removeprefix(_OF_TEMPLATE)
        case str(arn):
            return arn.removeprefix(_ANY_PREFIX)
    raise ValueError(f"Unknown resource: {resource}")
