"""Prints leased events without losing any on the way to the program that reads stdout.

A write to a pipe succeeds before the reader has read it, and `head -1` exits with the rest of its input unread. So each
event is printed after the reader has taken the one before, and an event is acknowledged only once it was taken.
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

from inbox.client import CallFailed, Client, Event, Lease
from inbox.domain import exact_json

# Early, because the lease lasts INBOX_LEASE_SECONDS until then, which may be short.
_FIRST_RENEWAL_SECONDS = 0.5
_RENEWAL_SECONDS = 20
_RENEWED_LEASE_SECONDS = 60
_LONGEST_PAUSE_MS = 100


def print_events(client: Client, inbox: str, limit: int, wait_seconds: int = 0) -> Lease:
    """Leases events and prints them, one JSON object a line. Returns the lease, settled.

    If stdout breaks, the events that were read are acknowledged and the others released.
    """
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed")
    with client.lease(inbox, limit=limit, wait=wait_seconds) as lease:
        printer = _Printer(lease)
        try:
            printer.print_all()
        except BaseException:
            # One try each, since `--follow` retries for ever. Unsettled events return when the lease expires.
            client.retries = 0
            with suppress(CallFailed):
                lease.acknowledge(printer.read)
            with suppress(CallFailed):
                lease.release(lease.held)
            raise
    if lease.lost:
        click.echo(f"The lease of {len(lease.lost)} events expired. They may be delivered again.", err=True)
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
        """Raises BrokenPipeError if the reader ends before it has taken everything."""
        is_closed, pause_ms = False, 1
        while self._unread_bytes():
            if is_closed:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            is_closed = bool(self._reader.poll(pause_ms))
            pause_ms = min(2 * pause_ms, _LONGEST_PAUSE_MS)
            self._renew()

    def _unread_bytes(self) -> int:
        (unread,) = struct.unpack("i", fcntl.ioctl(self._stdout, termios.FIONREAD, bytes(4)))
        return int(unread)

    def _renew(self) -> None:
        """A reader may take longer than a lease lasts, such as a loop in a shell."""
        if time.monotonic() >= self._renew_at:
            self._lease.acknowledge(self.read)
            self._lease.extend(_RENEWED_LEASE_SECONDS)
            self._renew_at = time.monotonic() + _RENEWAL_SECONDS
