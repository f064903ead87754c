"""Generates docs/explanation/cost.md from sheet.md and the measured units."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.cost import bills, prices
from bench.cost.bills import Bills
from bench.cost.prices import MILLION

UNITS = Path(__file__).parents[1] / "units.json"
SHEET = Path(__file__).parents[2] / "docs" / "explanation" / "cost.md"
_TEMPLATE = Path(__file__).with_name("sheet.md")
# Events per month.
_VOLUMES = (1_000, MILLION, 1_000 * MILLION)


def render_sheet(measured: Mapping[str, Any]) -> str:
    ours = Bills(measured)
    consumed, acknowledged = ours.units_of(bills.CONSUMED), ours.units_of(bills.ACKNOWLEDGED)
    units = {
        "unlisted_units": ours.units_of(bills.CONSUMED_UNLISTED).writes,
        "acknowledged_units": acknowledged.writes,
        "acknowledged_unlisted_units": ours.units_of(bills.ACKNOWLEDGED_UNLISTED).writes,
        "consumed_units": consumed.writes,
        "large_units": ours.units_of(bills.CONSUMED_LARGE).writes,
        "lease_writes": round(acknowledged.writes - consumed.writes, 2),
        "lease_reads": round(acknowledged.reads - consumed.reads, 2),
        "copy_units": ours.units_of(("copied to a named inbox",)).writes,
        "consume_units": ours.units_of(("consumed, 100 a poll",)).writes,
        "key_copy_writes": ours.units_of(("sent alone with a key, and copied",)).writes
        - ours.units_of(("sent alone", "copied to a named inbox")).writes,
        "key_reads": ours.units_of(("sent in a batch of 100 with keys",)).reads,
        "bytes_per_event": ours.bytes_per_event,
    }
    per_million = ours.price_requests(bills.CONSUMED, MILLION)
    provisioned = prices.PROVISIONED.dollars * MILLION / 3600
    amounts = {
        "consumed_per_million": format_dollars(per_million),
        "acknowledged_per_million": format_dollars(ours.price_requests(bills.ACKNOWLEDGED, MILLION)),
        "large_per_million": format_dollars(ours.price_requests(bills.CONSUMED_LARGE, MILLION)),
        "thousand_pollers": format_dollars(1000 * ours.price_polls(1)),
        "provisioned_per_million": format_dollars(provisioned),
        "break_even": _format_percent(provisioned / prices.WRITES.dollars),
        "on_demand_per_million": prices.WRITES.dollars,
        "sqs_ratio": _format_percent(bills.price_sqs(prices.SQS, MILLION, 1) / per_million),
        "sqs_batch_ratio": _format_percent(bills.price_sqs(prices.SQS, MILLION, 10) / per_million),
        "min_tasks": bills.count_tasks(0),
        "max_tasks": bills.count_tasks(_VOLUMES[-1]),
    }
    tables = {
        "bills": _render_bills(ours),
        "steps": _render_steps(ours),
        "pollers": _render_pollers(ours),
        "prices": _render_prices(),
    }
    return _TEMPLATE.read_text().format(**units, **amounts, **tables)


def format_dollars(dollars: float) -> str:
    if 0 < dollars < 0.01:
        return "< 0.01"
    return f"{dollars:,.2f}" if dollars < 100 else f"{dollars:,.0f}"


def _format_percent(ratio: float) -> str:
    return f"{100 * ratio:.0f} %"


def _render_bills(ours: Bills) -> str:
    parts: dict[str, Callable[[float], float]] = {
        "units, consumed": lambda events: ours.price_requests(bills.CONSUMED, events),
        "storage and point-in-time recovery": ours.price_storage,
        "look-ups, maximum": lambda events: ours.price_requests(bills.LOOKED_UP, events),
        "containers and load balancer": bills.price_containers,
    }
    extra_for_leases = [
        ours.price_requests(bills.ACKNOWLEDGED, events) - ours.price_requests(bills.CONSUMED, events)
        for events in _VOLUMES
    ]
    hookdeck = [
        " to ".join(dict.fromkeys(format_dollars(bills.price_hookdeck(events, price)) for price in _HOOKDECK_PRICES))
        for events in _VOLUMES
    ]
    return _render_table(
        ("", *(f"{events:,} events" for events in _VOLUMES)),
        [
            (
                "**Polling Inbox on DynamoDB, total**",
                *(f"**{format_dollars(_add_up(parts, each))}**" for each in _VOLUMES),
            ),
            *((f"· {name}", *(format_dollars(cost(events)) for events in _VOLUMES)) for name, cost in parts.items()),
            ("· extra for leasing and acknowledging", *(format_dollars(each) for each in extra_for_leases)),
            *(
                (
                    f"SQS {kind}, {how}",
                    *(format_dollars(bills.price_sqs(price, events, batch_size)) for events in _VOLUMES),
                )
                for kind, price in (("standard", prices.SQS), ("FIFO", prices.SQS_FIFO))
                for how, batch_size in (("one by one", 1), ("ten at a time", 10))
            ),
            (
                "EventBridge, to an HTTP endpoint",
                *(format_dollars(bills.price_eventbridge(events)) for events in _VOLUMES),
            ),
            ("Hookdeck", *hookdeck),
            ("Svix", *(format_dollars(bills.price_svix(events)) for events in _VOLUMES)),
        ],
    )


_HOOKDECK_PRICES = (prices.HOOKDECK_MANY, prices.HOOKDECK_EVENTS)


def _add_up(parts: Mapping[str, Callable[[float], float]], events: float) -> float:
    return sum(cost(events) for cost in parts.values())


def _render_steps(ours: Bills) -> str:
    rows = []
    for step in ours.measured["steps"]:
        units = ours.units_of((step,))
        dollars = f"{ours.price_requests((step,), MILLION):.3f}"
        rows.append((step, _format_units(units.writes), _format_units(units.reads), dollars))
    lives = {
        "consumed": bills.CONSUMED,
        "leased and acknowledged": bills.ACKNOWLEDGED,
        "consumed, not listed": bills.CONSUMED_UNLISTED,
        "leased and acknowledged, not listed": bills.ACKNOWLEDGED_UNLISTED,
        "consumed, 10 KB": bills.CONSUMED_LARGE,
        "leased and acknowledged, 10 KB": bills.ACKNOWLEDGED_LARGE,
    }
    for life, steps in lives.items():
        units, dollars = ours.units_of(steps), f"{ours.price_requests(steps, MILLION):.3f}"
        rows.append((f"**total: sent, {life}**", f"**{units.writes:g}**", f"**{units.reads:g}**", f"**{dollars}**"))
    return _render_table(("", "write units", "read units", "dollars"), rows)


def _render_pollers(ours: Bills) -> str:
    costs = {f"every {minutes} minutes": ours.price_polls(minutes) for minutes in (15, 5)}
    costs |= {
        "every minute": ours.price_polls(1),
        "always, with `wait=20`": ours.price_long_polls(),
    }
    return "\n".join(f"| {how} | {format_dollars(cost)} |" for how, cost in costs.items())


def _render_prices() -> str:
    return "\n".join(f"| {each.dollars:g} | {each.what} | {each.source} | {each.as_of} |" for each in prices.ALL)


def _format_units(units: float) -> str:
    return f"{units:g}" if units else ""


def _render_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
