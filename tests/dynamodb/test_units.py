"""What docs/explanation/cost.md says an event costs is what it costs now."""

import json
from contextlib import closing

from bench.cost.measurements import Measuring
from bench.cost.sheet import UNITS
from inbox.store.dynamodb.connection import Connection
from tests.engines.harnesses import DynamoDBHarness


def test_every_step_of_an_events_life_costs_the_units_that_are_written_down(harness: DynamoDBHarness) -> None:
    with closing(Connection(harness.prefix, 16)) as connection:
        now = Measuring(connection).figures()

    written = json.loads(UNITS.read_text())
    others = {step: units for step, units in now["steps"].items() if units != written["steps"].get(step)}
    assert others == {}, "more units are more money; where that is meant, make cost writes them down"
    assert now == written
