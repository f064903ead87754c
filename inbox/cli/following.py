"""inbox poll --follow: leases, prints, and only then acknowledges, so that nothing is lost on the way to stdout."""

import time
from contextlib import suppress

import click

from inbox import strict_json
from inbox.client import CallFailed, Client

_WAIT_SECONDS = 20


def follow(client: Client, inbox: str, limit: int) -> None:
    """Until Ctrl-C, or a refusal that no patience will change."""
    client.retries, client.on_retry = None, _say_so
    with suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            with client.lease(inbox, limit=limit, wait=_WAIT_SECONDS) as lease:
                for event in lease.events:
                    click.echo(strict_json.dump(event))
            if lease.lost:
                click.echo(f"The lease of {len(lease.lost)} events was over: they may come again.", err=True)
            if not lease.events and time.monotonic() - began < 1:
                # Too many wait there already, so the answer came at once, and so would the next.
                time.sleep(1)


def _say_so(failure: CallFailed, pause_seconds: int) -> None:
    click.echo(f"{failure} Trying again in {pause_seconds} s.", err=True)
