"""What the policies allow, in the words of the recorded calls: `Action table`, or `Action table/index/name`."""

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
"""Who has which policy."""

_TEMPLATE = templates.read(templates.FOLDER / "policies.yaml")
_OF_TEMPLATE = "arn:${AWS::Partition}:dynamodb:*:${AWS::AccountId}:table/${TablePrefix}"
_ANY_PREFIX = "arn:aws:dynamodb:*:*:table/*"


def documents() -> dict[str, dict[str, Any]]:
    """Each policy of the template by its logical id, and the Lambda's by the name of its file."""
    of_template = {
        name: resource["Properties"]["PolicyDocument"]
        for name, resource in _TEMPLATE["Resources"].items()
        if resource["Type"] == "AWS::IAM::ManagedPolicy"
    }
    authorizer = templates.FOLDER.parent / "iam" / "authorizer.json"
    return of_template | {authorizer.name: json.loads(authorizer.read_text())}


def faults(name: str, document: dict[str, Any]) -> list[str]:
    """What is missing in the policy, and what it has too much of."""
    allowed = {right for statement in document["Statement"] for right in rights_in(statement)}
    known = known_calls()
    needed = {right for program in PROGRAMS[name] for right in known.get(program, ())}
    return [f"missing: {right}" for right in sorted(needed - allowed)] + [
        f"spare: {right}" for right in sorted(allowed - needed)
    ]


def rights_in(statement: dict[str, Any]) -> Iterator[str]:
    """A wildcard stands for itself: no call needs it."""
    assert statement.keys() == {"Sid", "Effect", "Action", "Resource"}, "this reader knows nothing else"
    assert statement["Effect"] == "Allow"
    for action in as_list(statement["Action"]):
        for resource in as_list(statement["Resource"]):
            yield f"{action.removeprefix('dynamodb:')} {_name(resource)}"


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _name(resource: Any) -> str:
    """Without the prefix of the table, which is a parameter."""
    match resource:
        case {"Fn::Sub": str(arn)} if arn.startswith(_OF_TEMPLATE):
            return arn.removeprefix(_OF_TEMPLATE)
        case str(arn):
            return arn.removeprefix(_ANY_PREFIX)
    raise ValueError(f"No resource that this reader knows: {resource}")
