"""Generates docs/explanation/cost.md from sheet.md and the measured units."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.cost import bills, prices
from bench.cost.bills import Bills
from bench.cost.prices import MILLION

UNITS = Path(__file__).parents[1] / "units.json"
SHEET = Path(__file__).parents[2] / "docs" / "explanation" / "cost.md"
_WORDS = Path(__file__).with_name("sheet.md")
_MONTHS = (1_000, MILLION, 1_000 * MILLION)
_LOOKS_A_SECOND = 5


def sheet(measured: Mapping[str, Any]) -> str:
    ours = Bills(measured)
    consumed, acknowledged = ours.units(bills.CONSUMED), ours.units(bills.ACKNOWLEDGED)
    of_units = {
        "large_units": ours.units(bills.CONSUMED_LARGE).writes,
        "lease_writes": acknowledged.writes - consumed.writes,
        "lease_reads": round(acknowledged.reads - consumed.reads, 2),
        "copy_units": ours.units(("copied to a named inbox",)).writes,
        "consume_units": ours.units(("consumed, 100 a poll",)).writes,
        "key_copy_writes": ours.units(("sent alone with a key, and copied",)).writes
        - ours.units(("sent alone", "copied to a named inbox")).writes,
        "key_reads": ours.units(("sent in a batch of 100 with keys",)).reads,
        "bytes_an_event": ours.bytes_an_event,
    }
    a_million = ours.requests(bills.CONSUMED, MILLION)
    provisioned = prices.PROVISIONED.dollars * MILLION / 3600
    of_money = {
        "consumed_a_million": money(a_million),
        "acknowledged_a_million": money(ours.requests(bills.ACKNOWLEDGED, MILLION)),
        "large_a_million": money(ours.requests(bills.CONSUMED_LARGE, MILLION)),
        "thousand_pollers": money(1000 * ours.polls(1)),
        "provisioned_a_million": money(provisioned),
        "break_even": _part(provisioned / prices.WRITES.dollars),
        "on_demand_a_million": prices.WRITES.dollars,
        "sqs_ratio": _part(bills.sqs(prices.SQS, MILLION, 1) / a_million),
        "sqs_batch_ratio": _part(bills.sqs(prices.SQS, MILLION, 10) / a_million),
        "least_tasks": bills.tasks(0),
        "most_tasks": bills.tasks(_MONTHS[-1]),
    }
    tables = {"bills": _bills(ours), "steps": _steps(ours), "pollers": _pollers(ours), "prices": _prices()}
    return _WORDS.read_text().format(**of_units, **of_money, **tables)


def money(dollars: float) -> str:
    if 0 < dollars < 0.01:
        return "< 0.01"
    return f"{dollars:,.2f}" if dollars < 100 else f"{dollars:,.0f}"


def _part(ratio: float) -> str:
    return f"{100 * ratio:.0f} %"


def _bills(ours: Bills) -> str:
    parts: dict[str, Callable[[float], float]] = {
        "units, consumed": lambda events: ours.requests(bills.CONSUMED, events),
        "storage and point-in-time recovery": ours.storage,
        "look-ups, maximum": lambda events: ours.requests(bills.LOOKED_UP, events),
        "containers and load balancer": bills.containers,
    }
    more_for_leases = [
        ours.requests(bills.ACKNOWLEDGED, events) - ours.requests(bills.CONSUMED, events) for events in _MONTHS
    ]
    hookdeck = [
        " to ".join(dict.fromkeys(money(bills.hookdeck(events, price)) for price in _HOOKDECK)) for events in _MONTHS
    ]
    return _table(
        ("", *(f"{events:,} events" for events in _MONTHS)),
        [
            ("**Polling Inbox on DynamoDB, total**", *(f"**{money(_sum(parts, each))}**" for each in _MONTHS)),
            *((f"· {name}", *(money(cost(events)) for events in _MONTHS)) for name, cost in parts.items()),
            ("· extra for leasing and acknowledging", *(money(each) for each in more_for_leases)),
            *(
                (f"SQS {kind}, {how}", *(money(bills.sqs(price, events, together)) for events in _MONTHS))
                for kind, price in (("standard", prices.SQS), ("FIFO", prices.SQS_FIFO))
                for how, together in (("one by one", 1), ("ten at a time", 10))
            ),
            ("EventBridge, to an HTTP endpoint", *(money(bills.eventbridge(events)) for events in _MONTHS)),
            ("Hookdeck", *hookdeck),
            ("Svix", *(money(bills.svix(events)) for events in _MONTHS)),
        ],
    )


_HOOKDECK = (prices.HOOKDECK_MANY, prices.HOOKDECK_EVENTS)


def _sum(parts: Mapping[str, Callable[[float], float]], events: float) -> float:
    return sum(cost(events) for cost in parts.values())


def _steps(ours: Bills) -> str:
    rows = []
    for step in ours.measured["steps"]:
        units = ours.units((step,))
        dollars = f"{ours.requests((step,), MILLION):.3f}"
        rows.append((step, _or_none(units.writes), _or_none(units.reads), dollars))
    for life, steps in (("consumed", bills.CONSUMED), ("leased and acknowledged", bills.ACKNOWLEDGED)):
        units, dollars = ours.units(steps), f"{ours.requests(steps, MILLION):.3f}"
        rows.append((f"**a life: sent, {life}**", f"**{units.writes:g}**", f"**{units.reads:g}**", f"**{dollars}**"))
    return _table(("", "write units", "read units", "dollars"), rows)


def _pollers(ours: Bills) -> str:
    costs = {f"every {minutes} minutes": ours.polls(minutes) for minutes in (15, 5)}
    costs |= {"every minute": ours.polls(1), "always, with `wait=20`": ours.waits(_LOOKS_A_SECOND)}
    return "\n".join(f"| {how} | {money(cost)} |" for how, cost in costs.items())


def _prices() -> str:
    return "\n".join(f"| {each.dollars:g} | {each.what} | {each.source} | {each.found} |" for each in prices.ALL)


def _or_none(units: float) -> str:
    return f"{units:g}" if units else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---", *("---:" for _ in head[1:])), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
