"""ministack, with placeholders for the resource types that it does not support. Run by the Python of its environment.

ministack refuses a template that has one of these types. A placeholder has a name and creates nothing, so finding it
in a stack only proves that the template was read.
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


def _placeholder(logical_id: str, _properties: Any, stack: str, attributes: tuple[str, ...] = ()) -> tuple[str, Any]:
    name = f"placeholder-{stack}-{logical_id}"
    return name, {attribute: f"{name}-{attribute}" for attribute in attributes}


_handlers = provisioners._RESOURCE_HANDLERS
_make_real_alarm = _handlers["AWS::CloudWatch::Alarm"]["create"]


def _make_alarm(logical_id: str, properties: Any, stack: str) -> Any:
    """Makes an alarm, or a placeholder if the alarm uses several metrics."""
    make = _make_real_alarm if "Metrics" not in properties else _placeholder
    return make(logical_id, properties, stack)


for kind, attributes in PLACEHOLDERS.items():
    _handlers[kind] = {"create": partial(_placeholder, attributes=attributes), "delete": lambda *_: None}
_handlers["AWS::CloudWatch::Alarm"]["create"] = _make_alarm

if __name__ == "__main__":
    sys.argv = ["ministack"]
    main()
