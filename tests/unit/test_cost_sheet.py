"""docs/explanation/cost.md is made, not written."""

import json

import pytest

from bench.cost.bills import ACKNOWLEDGED, CONSUMED, POLLING_MS, SENDING_MS, Bills
from bench.cost.prices import ALL
from bench.cost.sheet import SHEET, UNITS, money, sheet
from inbox.settings import Settings
from inbox.store.dynamodb.connection import AT_ONCE

MEASURED = json.loads(UNITS.read_text())


def test_the_price_sheet_is_what_the_program_makes_of_the_measured_units() -> None:
    assert SHEET.read_text() == sheet(MEASURED), "make cost writes it anew"


def test_every_price_says_where_and_as_of_when_it_was_found() -> None:
    assert all(each.source.startswith("https://") and each.found for each in ALL)


def test_a_bill_is_units_times_prices() -> None:
    steps = {
        "sent": {"writes": 3.0, "reads": 0.0, "status_index_writes": 1.0},
        "polled": {"writes": 3.0, "reads": 8.0, "status_index_writes": 2.0},
    }
    bills = Bills({"steps": steps, "bytes": {"Events": 924, "status-index": 924}})

    assert bills.requests(("sent", "polled"), 2_000_000) == 2 * (6 * 0.625 + 8 * 0.125)
    # Items of 1 KB with what DynamoDB adds to each, and recovery for the table's alone.
    assert bills.storage(1024 * 1024) == pytest.approx(2 * 0.25 + 0.2)


@pytest.mark.parametrize(
    ("dollars", "shown"), [(0.0, "0.00"), (0.004, "< 0.01"), (3.7544, "3.75"), (1_234_567.8, "1,234,568")]
)
def test_money_is_shown_as_exactly_as_it_matters(dollars: float, shown: str) -> None:
    assert money(dollars) == shown


def test_the_scale_page_counts_with_the_measured_figures() -> None:
    page, bills = SHEET.with_name("scale.md").read_text(), Bills(MEASURED)
    consumed, acknowledged = bills.units(CONSUMED), bills.units(ACKNOWLEDGED)

    assert (
        f"| together | {consumed.writes:g} | {consumed.status_index_writes:g} | {SENDING_MS + POLLING_MS:.1f} ms |"
        in page
    )
    assert f"instead of consumed | {acknowledged.writes:g} in all | {acknowledged.status_index_writes:g} |" in page
    assert f"× a billion × {bills.bytes_an_event:,} bytes" in page
    assert f"({Settings().threads} threads + {AT_ONCE}) × 2 clients" in page
    # A read unit for each shard, and for the partition from before there were any.
    assert bills.units(("an empty poll, 8 shards",)).reads == 8 + 1
