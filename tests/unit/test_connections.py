"""What the connections of a process may use together, and which of them are closed first."""

import pytest

from inbox.errors import Overloaded
from inbox.server.connection import Connection
from inbox.server.connections import Connections


class Member(Connection):
    """Records the last call."""

    def __init__(self, connections: Connections) -> None:
        self.deadline = float("inf")
        self.held_bytes = 0
        self.fate = ""
        self.is_added = connections.add(self)

    def time_out(self) -> None:
        self.fate = "timed out"

    def cancel_transfer(self) -> None:
        self.fate = "cancelled"

    def wake(self) -> None:
        self.fate = "woken"

    def abort(self) -> None:
        self.fate = "aborted"


def fates(*members: Member) -> list[str]:
    return [member.fate for member in members]


def test_longest_idle_connection_is_closed_first() -> None:
    connections = Connections(3, 100)
    _busy, recent, longest = members = [Member(connections) for _ in range(3)]
    connections.mark_idle(longest)
    connections.mark_idle(recent)
    assert Member(connections).is_added
    assert fates(*members) == ["", "", "aborted"]


def test_slow_transfer_is_closed_if_no_connection_is_idle() -> None:
    connections = Connections(2, 100)
    busy, slow = Member(connections), Member(connections)
    connections.hold(slow, 1, transferring=True)
    assert Member(connections).is_added
    assert fates(busy, slow) == ["", "aborted"]


def test_busy_connections_are_not_closed_to_make_room() -> None:
    connections = Connections(1, 100)
    busy = Member(connections)
    assert not Member(connections).is_added
    connections.remove(busy)
    assert Member(connections).is_added


def test_complete_body_is_no_transfer_that_could_be_cancelled() -> None:
    connections = Connections(1, 100)
    member = Member(connections)
    connections.hold(member, 0, transferring=True)
    connections.hold(member, 0)
    assert not Member(connections).is_added


def test_oldest_transfers_are_cancelled_above_the_limit() -> None:
    connections = Connections(9, 100)
    complete, oldest, older, newest = members = [Member(connections) for _ in range(4)]
    connections.hold(complete, 30)
    connections.hold(oldest, 20, transferring=True)
    connections.hold(older, 40, transferring=True)
    connections.hold(oldest, 25, transferring=True)
    assert fates(*members) == ["", "", "", ""]
    connections.hold(newest, 45, transferring=True)
    assert fates(*members) == ["", "cancelled", "cancelled", ""]
    connections.hold(newest, 70, transferring=True)
    assert fates(*members) == ["", "cancelled", "cancelled", ""]
    with pytest.raises(Overloaded):
        connections.hold(newest, 71, transferring=True)
    assert newest.held_bytes == 0


def test_connections_whose_deadline_is_over_time_out() -> None:
    connections = Connections(9, 100)
    late, patient = Member(connections), Member(connections)
    late.deadline = 0
    connections.check_deadlines()
    assert fates(late, patient) == ["timed out", ""]


@pytest.mark.parametrize("is_idle", [True, False])
def test_stop_wakes_idle_connections_only(is_idle: bool) -> None:
    connections = Connections(9, 100)
    member = Member(connections)
    if is_idle:
        connections.mark_idle(member)
    connections.stop()
    assert member.fate == ("woken" if is_idle else "")
