"""The limits that all connections of a process share, and which connections are closed first."""

import pytest

from inbox.errors import Overloaded
from inbox.server.connection import Connection
from inbox.server.connections import Connections, State


class FakeConnection(Connection):
    """A connection without a socket that records the last call."""

    def __init__(self, connections: Connections, state: State = State.RUNNING, held_bytes: int = 0) -> None:
        self.deadline = float("inf")
        self.state = State.IDLE
        self.held_bytes = 0
        self.last_call = ""
        self.is_added = connections.add(self)
        if self.is_added:
            connections.update(self, state, held_bytes)

    def interrupt(self, error: Exception) -> None:
        self.last_call = "timed out" if isinstance(error, TimeoutError) else "cancelled"

    def wake(self) -> None:
        self.last_call = "woken"

    def abort(self) -> None:
        self.last_call = "aborted"


def list_last_calls(*members: FakeConnection) -> list[str]:
    return [member.last_call for member in members]


def test_longest_idle_connection_is_closed_first() -> None:
    connections = Connections(3, 100)
    _busy, longest, recent = members = [FakeConnection(connections) for _ in range(3)]
    connections.update(longest, State.IDLE)
    connections.update(recent, State.IDLE)
    connections.update(longest, State.IDLE)
    assert FakeConnection(connections).is_added
    assert list_last_calls(*members) == ["", "aborted", ""]


def test_connections_are_closed_in_the_order_of_their_states() -> None:
    connections = Connections(5, 100)
    states = [State.SENDING, State.WAITING, State.RUNNING, State.RECEIVING, State.IDLE]
    sending, waiting, running, receiving, idle = members = [FakeConnection(connections, state) for state in states]
    closed = []
    while FakeConnection(connections).is_added:
        closed.append(next(each for each in members if each.last_call and each not in closed))
    assert closed == [idle, receiving, waiting, sending]
    assert running.last_call == ""


def test_connection_closed_at_the_limit_is_not_counted_again() -> None:
    connections = Connections(1, 100)
    closed = FakeConnection(connections, State.WAITING)
    FakeConnection(connections)
    connections.update(closed, State.RUNNING)
    connections.remove(closed)
    assert len(connections) == 1


def test_connections_that_run_the_app_are_not_closed_at_the_limit() -> None:
    connections = Connections(1, 100)
    running = FakeConnection(connections)
    assert not FakeConnection(connections).is_added
    connections.remove(running)
    assert FakeConnection(connections).is_added


def test_oldest_transfers_are_cancelled_above_the_limit() -> None:
    connections = Connections(9, 100)
    complete = FakeConnection(connections, State.RUNNING, 30)
    oldest = FakeConnection(connections, State.RECEIVING, 20)
    older = FakeConnection(connections, State.RECEIVING, 40)
    newest = FakeConnection(connections, State.RECEIVING)
    members = complete, oldest, older, newest
    connections.update(oldest, State.RECEIVING, 25)
    assert list_last_calls(*members) == ["", "", "", ""]
    connections.update(newest, State.RECEIVING, 45)
    assert list_last_calls(*members) == ["", "cancelled", "cancelled", ""]
    connections.update(newest, State.RECEIVING, 70)
    assert list_last_calls(*members) == ["", "cancelled", "cancelled", ""]
    with pytest.raises(Overloaded):
        connections.update(newest, State.RECEIVING, 71)
    assert newest.held_bytes == 0


def test_requests_are_cancelled_before_responses() -> None:
    connections = Connections(9, 100)
    sending = FakeConnection(connections, State.SENDING, 60)
    receiving = FakeConnection(connections, State.RECEIVING, 30)
    FakeConnection(connections, State.RUNNING, 20)
    assert list_last_calls(sending, receiving) == ["", "cancelled"]


def test_complete_body_is_refused_if_no_transfer_can_be_cancelled() -> None:
    connections = Connections(9, 100)
    FakeConnection(connections, State.RUNNING, 80)
    with pytest.raises(Overloaded):
        FakeConnection(connections, State.RUNNING, 21)
    assert FakeConnection(connections, State.RUNNING, 20).last_call == ""


def test_thousands_of_transfers_are_cancelled_at_once() -> None:
    connections = Connections(5_000, 5_000)
    members = [FakeConnection(connections, State.RECEIVING, 1) for _ in range(4_000)]
    FakeConnection(connections, State.RUNNING, 5_000)
    assert list_last_calls(*members) == ["cancelled"] * 4_000


def test_connections_time_out_after_their_deadline() -> None:
    connections = Connections(9, 100)
    late, other = FakeConnection(connections), FakeConnection(connections)
    late.deadline = 0
    connections.check_deadlines()
    assert list_last_calls(late, other) == ["timed out", ""]


@pytest.mark.parametrize("state", State)
def test_stop_wakes_idle_connections_only(state: State) -> None:
    connections = Connections(9, 100)
    member = FakeConnection(connections, state)
    connections.stop()
    assert member.last_call == ("woken" if state is State.IDLE else "")
