"""bench/units.json, from which docs/explanation/cost.md is computed, matches the store."""

import json
from contextlib import closing

from bench.cost.measurements import UnitMeter
from bench.cost.sheet import UNITS
from inbox.store.dynamodb.connection import Connection
from tests.engines.harnesses import DynamoDBHarness


def test_every_operation_costs_the_units_in_the_cost_sheet(harness: DynamoDBHarness) -> None:
    with closing(Connection(harness.prefix, 16)) as connection:
        measured = UnitMeter(connection).measure_figures()

    recorded = json.loads(UNITS.read_text())
    different = {step: units for step, units in measured["steps"].items() if units != recorded["steps"].get(step)}
    assert different == {}, "the units of an event have changed; if that is intended, run `make cost`"
    assert measured == recorded
