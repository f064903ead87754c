"""What the connections of a process may use together, and which of them are closed first."""

import pytest

from inbox.server.connection import Connection
from inbox.server.connections import Connections


class Member(Connection):
    """Tells what it was told."""

    def __init__(self, connections: Connections) -> None:
        self.deadline = float("inf")
        self.held_bytes = 0
        self.fate = ""
        connections.add(self)

    def time_out(self) -> None:
        self.fate = "timed out"

    def give_up(self) -> None:
        self.fate = "gave up"

    def close_idle(self) -> None:
        self.fate = "closed"

    def abort(self) -> None:
        self.fate = "aborted"


def fates(*members: Member) -> list[str]:
    return [member.fate for member in members]


def test_longest_idle_connection_is_closed_first() -> None:
    connections = Connections(3, 100)
    busy, recent, longest = (Member(connections) for _ in range(3))
    connections.mark_busy(busy)
    connections.mark_busy(recent)
    connections.mark_idle(recent)
    assert connections.make_room()
    assert fates(busy, recent, longest) == ["", "", "aborted"]


def test_slow_transfer_is_closed_if_no_connection_is_idle() -> None:
    connections = Connections(2, 100)
    busy, slow = Member(connections), Member(connections)
    for member in (busy, slow):
        connections.mark_busy(member)
    connections.hold(slow, 1, transferring=True)
    assert connections.make_room()
    assert fates(busy, slow) == ["", "aborted"]


def test_no_room_is_made_by_closing_connections_at_work() -> None:
    connections = Connections(1, 100)
    busy = Member(connections)
    connections.mark_busy(busy)
    assert not connections.make_room()
    connections.remove(busy)
    assert connections.make_room()


def test_oldest_transfers_give_up_above_the_limit() -> None:
    connections = Connections(9, 100)
    complete, oldest, older, newest = members = [Member(connections) for _ in range(4)]
    connections.hold(complete, 30, transferring=False)
    connections.hold(oldest, 20, transferring=True)
    connections.hold(older, 40, transferring=True)
    connections.hold(oldest, 25, transferring=True)
    assert fates(*members) == ["", "", "", ""]
    connections.hold(newest, 45, transferring=True)
    assert fates(*members) == ["", "gave up", "gave up", ""]
    connections.hold(newest, 70, transferring=True)
    assert fates(*members) == ["", "gave up", "gave up", ""]
    connections.hold(newest, 71, transferring=True)
    assert newest.fate == "gave up"


def test_connections_whose_deadline_is_over_time_out() -> None:
    connections = Connections(9, 100)
    late, patient = Member(connections), Member(connections)
    late.deadline = 0
    connections.check_deadlines()
    assert fates(late, patient) == ["timed out", ""]


@pytest.mark.parametrize("is_idle", [True, False])
def test_stop_closes_idle_connections_only(is_idle: bool) -> None:
    connections = Connections(9, 100)
    member = Member(connections)
    if not is_idle:
        connections.mark_busy(member)
    connections.stop()
    assert member.fate == ("closed" if is_idle else "")
