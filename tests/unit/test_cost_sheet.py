"""docs/explanation/cost.md and scale.md match the measured units."""

import json

from bench.cost.bills import ACKNOWLEDGED, CONSUMED, POLLING_MS, SENDING_MS, Bills
from bench.cost.sheet import SHEET, UNITS, render_sheet
from inbox.settings import Settings
from inbox.store.dynamodb.connection import MAX_PARALLEL_CALLS

MEASURED = json.loads(UNITS.read_text())


def test_cost_page_shows_the_measured_units() -> None:
    assert SHEET.read_text() == render_sheet(MEASURED), "run `make cost`"


def test_scale_page_uses_the_measured_units() -> None:
    page, bills = SHEET.with_name("scale.md").read_text(), Bills(MEASURED)
    consumed, acknowledged = bills.units_of(CONSUMED), bills.units_of(ACKNOWLEDGED)

    assert (
        f"| together | {consumed.writes:g} | {consumed.status_index_writes:g} | {SENDING_MS + POLLING_MS:.1f} ms |"
        in page
    )
    assert f"instead of consumed | {acknowledged.writes:g} in all | {acknowledged.status_index_writes:g} |" in page
    assert f"× a billion × {bills.bytes_per_event:,} bytes" in page
    assert f"({Settings().threads} threads + {MAX_PARALLEL_CALLS}) × 2 clients" in page
    # A query for each shard.
    assert bills.units_of(("an empty poll, 8 shards",)).reads == 8 / 2
