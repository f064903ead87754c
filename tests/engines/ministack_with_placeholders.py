"""ministack, with a place for the resources that it does not know. Run by the Python of its own environment.

It refuses a template that has any of these. Here they are accepted, get a name, and nothing is made: what a test finds
of them in a stack proves nothing but that the template could be read.
"""

import sys
from functools import partial
from typing import Any

from ministack.app import main
from ministack.services.cloudformation import provisioners

PLACEHOLDERS = {
    "AWS::AppRunner::AutoScalingConfiguration": ("AutoScalingConfigurationArn",),
    "AWS::AppRunner::Service": ("ServiceArn", "ServiceId", "ServiceUrl"),
    "AWS::ApplicationAutoScaling::ScalableTarget": (),
    "AWS::ApplicationAutoScaling::ScalingPolicy": (),
    "AWS::Backup::BackupSelection": (),
    "AWS::Budgets::Budget": (),
    "AWS::CE::AnomalySubscription": (),
    "AWS::EC2::SecurityGroupIngress": (),
}


def _keep_place(logical_id: str, _properties: Any, stack: str, attributes: tuple[str, ...] = ()) -> tuple[str, Any]:
    name = f"placeholder-{stack}-{logical_id}"
    return name, {attribute: f"{name}-{attribute}" for attribute in attributes}


_handlers = provisioners._RESOURCE_HANDLERS
_make_alarm = _handlers["AWS::CloudWatch::Alarm"]["create"]


def _alarm(logical_id: str, properties: Any, stack: str) -> Any:
    """One over several metrics is a placeholder too."""
    make = _make_alarm if "Metrics" not in properties else _keep_place
    return make(logical_id, properties, stack)


for kind, attributes in PLACEHOLDERS.items():
    _handlers[kind] = {"create": partial(_keep_place, attributes=attributes), "delete": lambda *_: None}
_handlers["AWS::CloudWatch::Alarm"]["create"] = _alarm

if __name__ == "__main__":
    sys.argv = ["ministack"]
    main()
