"""inbox poll: prints events, and loses none on the way to the program that reads stdout.

A write to a pipe succeeds before the reader has read it, and `head -1` exits with the rest of its input unread. So each
event is printed after the reader has read the previous one, and acknowledged only after the reader has read it.
"""

import errno
import fcntl
import os
import select
import stat
import struct
import sys
import termios
import time
from contextlib import suppress

import click

from inbox.cli.parameters import INBOX_NAME, WholeNumber
from inbox.cli.service_calls import calls_service
from inbox.client import CallFailed, Client, Event, Lease
from inbox.domain import exact_json
from inbox.domain.events import DEFAULT_INBOX

_FOLLOW_WAIT_SECONDS = 20
# Early, because the first lease lasts INBOX_LEASE_SECONDS, which may be short.
_FIRST_RENEWAL_SECONDS = 0.5
_RENEWAL_SECONDS = 20
_RENEWED_LEASE_SECONDS = 60
_MAX_PAUSE_MS = 100


@click.command()
@click.option("--inbox", default=DEFAULT_INBOX, type=INBOX_NAME, metavar="NAME", help="Named inbox to poll.")
@click.option("--limit", type=WholeNumber(1, 500), default=100, show_default=True, help="Events per poll.")
@click.option("--peek", is_flag=True, help="Leave the events undelivered.")
@click.option("--follow", is_flag=True, help="Keep polling until Ctrl-C.")
@calls_service
def poll(client: Client, inbox: str, limit: int, peek: bool, follow: bool) -> None:
    """Poll and print the undelivered events.

    Prints one JSON object per line. Leases the events, and acknowledges each after it was read: if the reader ends
    early, as `head` does, the rest stays in the inbox.
    """
    if follow and peek:
        raise click.UsageError("--follow and --peek cannot be used together.")
    if follow:
        _follow(client, inbox, limit)
    elif peek:
        for event in client.peek(inbox, limit=limit):
            click.echo(exact_json.dump(event))
    else:
        print_events(client, inbox, limit)


def _follow(client: Client, inbox: str, limit: int) -> None:
    """Polls until Ctrl-C. Raises CallFailed if a retry would not help."""
    client.retries, client.on_retry = None, _print_retry
    with suppress(KeyboardInterrupt):
        while True:
            started_at = time.monotonic()
            lease = print_events(client, inbox, limit, _FOLLOW_WAIT_SECONDS)
            if not lease.events and time.monotonic() - started_at < 1:
                # The service does not let the poll wait, for example because it is stopping.
                time.sleep(1)


def _print_retry(failure: CallFailed, pause_seconds: int) -> None:
    click.echo(f"{failure} Trying again in {pause_seconds} s.", err=True)


def print_events(client: Client, inbox: str, limit: int, wait_seconds: int = 0) -> Lease:
    """Leases events and prints them. Returns the settled lease.

    If stdout breaks, acknowledges the events that were read and releases the others.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
    with client.lease(inbox, limit=limit, wait=wait_seconds) as lease:
        printer = _Printer(lease)
        try:
            printer.print_all()
        except BaseException:
            # One try each, because `--follow` retries without limit. Unsettled events return when the lease expires.
            client.retries = 0
            with suppress(CallFailed):
                lease.acknowledge(printer.read)
            with suppress(CallFailed):
                lease.release(lease.held)
            raise
    if lease.lost:
        click.echo(f"The leases of {len(lease.lost)} events expired. They may be delivered again.", err=True)
    return lease


class _Printer:
    def __init__(self, lease: Lease) -> None:
        self.read: list[Event] = []
        self._lease = lease
        self._renew_at = time.monotonic() + _FIRST_RENEWAL_SECONDS
        self._stdout = sys.stdout.fileno()
        self._is_pipe = stat.S_ISFIFO(os.fstat(self._stdout).st_mode)
        self._reader = select.poll()
        # With no events requested, poll() still reports that the reader has closed the pipe.
        self._reader.register(self._stdout, 0)

    def print_all(self) -> None:
        for event in self._lease.events:
            if event not in self._lease.lost:
                click.echo(exact_json.dump(event))
                if self._is_pipe:
                    self._wait_until_read()
                self.read.append(event)

    def _wait_until_read(self) -> None:
        """Raises BrokenPipeError if the reader ends before it has read everything."""
        is_closed, pause_ms = False, 1
        while self._unread_bytes():
            if is_closed:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            is_closed = bool(self._reader.poll(pause_ms))
            pause_ms = min(2 * pause_ms, _MAX_PAUSE_MS)
            self._renew()

    def _unread_bytes(self) -> int:
        (unread,) = struct.unpack("i", fcntl.ioctl(self._stdout, termios.FIONREAD, bytes(4)))
        return int(unread)

    def _renew(self) -> None:
        """Extends the lease, because a reader such as a loop in a shell may take longer."""
        if time.monotonic() >= self._renew_at:
            self._lease.acknowledge(self.read)
            self._lease.extend(_RENEWED_LEASE_SECONDS)
            self._renew_at = time.monotonic() + _RENEWAL_SECONDS
