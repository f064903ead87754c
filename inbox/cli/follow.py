"""inbox poll --follow"""

import time
from contextlib import suppress

import click

from inbox.cli.poll import print_events
from inbox.client import CallFailed, Client

_WAIT_SECONDS = 20


def follow(client: Client, inbox: str, limit: int) -> None:
    """Until Ctrl-C, or a refusal that no patience will change."""
    client.retries, client.on_retry = None, _say_so
    with suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            lease = print_events(client, inbox, limit, _WAIT_SECONDS)
            if not lease.events and time.monotonic() - began < 1:
                # Too many wait there already, so the answer came at once, and so would the next.
                time.sleep(1)


def _say_so(failure: CallFailed, pause_seconds: int) -> None:
    click.echo(f"{failure} Trying again in {pause_seconds} s.", err=True)
