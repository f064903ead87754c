"""bench/units.json, from which docs/explanation/cost.md is computed, matches the store."""

import json
from contextlib import closing

from bench.cost.measurements import UnitMeter
from bench.cost.sheet import UNITS
from inbox.store.dynamodb.connection import Connection
from tests.engines.harnesses import DynamoDBHarness


def test_every_operation_costs_the_units_in_the_cost_sheet(harness: DynamoDBHarness) -> None:
    with closing(Connection(harness.prefix, 16)) as connection:
        now = UnitMeter(connection).figures()

    written = json.loads(UNITS.read_text())
    others = {step: units for step, units in now["steps"].items() if units != written["steps"].get(step)}
    assert others == {}, "the units of an event have changed; if that is intended, run `make cost`"
    assert now == written
