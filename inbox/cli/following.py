"""inbox poll --follow: leases, prints, and only then acknowledges, so that nothing is lost on the way to stdout."""

import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from inbox import strict_json
from inbox.cli.calling import CallFailed, Service

_WAIT_SECONDS = 20
_LONGEST_PAUSE_SECONDS = 30


def follow(service: Service, path: str, limit: int) -> None:
    """Until Ctrl-C."""
    with suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            events = _lease(service, path, limit)
            for event in events:
                click.echo(strict_json.dump(event))
            if events:
                _acknowledge(service, [event["receipt"] for event in events])
            elif time.monotonic() - began < 1:
                # Too many wait there already, so the answer came at once, and so would the next.
                time.sleep(1)


def _lease(service: Service, path: str, limit: int) -> list[Any]:
    parameters = {"mode": "lease", "limit": limit, "wait": _WAIT_SECONDS}
    # The same for every try: where an answer was lost, the next try gets its events.
    attempt = {"Inbox-Attempt": uuid.uuid4().hex}
    events: list[Any] = _insist(lambda: service.ask("GET", path, list, params=parameters, headers=attempt))
    return events


def _acknowledge(service: Service, receipts: list[str]) -> None:
    settled = _insist(lambda: service.ask("POST", "/inbox/ack", dict, json={"receipts": receipts}))
    if settled["lost"]:
        click.echo(f"The lease of {len(settled['lost'])} events was over: they may come again.", err=True)


def _insist(call: Callable[[], Any]) -> Any:
    """Calls until there is an answer, or a refusal that no patience will change."""
    pause_seconds = 1
    while True:
        try:
            return call()
        except CallFailed as failure:
            if not failure.may_pass:
                raise
            pause = max(pause_seconds, min(failure.retry_after_seconds, _LONGEST_PAUSE_SECONDS))
            click.echo(f"{failure.message} Trying again in {pause} s.", err=True)
        time.sleep(pause)
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
