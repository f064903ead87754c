"""One event in its drawer, when not every look at it works."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.console_tab import Visit
from tests.browser.responses import REQUEST_ID, refused
from tests.browser.tenant import Account


def drawer(console: Visit, account: Account) -> tuple[str, Locator]:
    """The id of an event, and the drawer in which it is open. It was delivered."""
    api = account.api()
    event_id = api.send({"order": 1001}, "order.created")
    api.poll()
    console.go("Events")
    console.open_row("Events", "order.created")
    dialog = console.dialog("Event")
    expect(dialog.get_by_role("button", name="Replay")).to_be_enabled()
    return event_id, dialog


@pytest.mark.parametrize(
    ("scopes", "buttons"),
    [
        (("events:read",), []),
        (("inbox:read",), ["Replay"]),
        (("events:read", "tenant:manage"), ["Erase"]),
    ],
)
def test_only_what_the_key_may_do_is_offered(
    visit: Visit, account: Account, scopes: tuple[str, ...], buttons: list[str]
) -> None:
    api = account.api()
    api.send({"order": 1001}, "order.created")
    visit.sign_in(account.key(*scopes))
    expect(visit.heading("Overview")).to_be_visible()
    visit.go("Inboxes")
    visit.row("Inboxes", "default").get_by_role("button", name="Peek").click()
    expect(visit.dialog("Waiting in default")).to_contain_text("1001")
    visit.page.keyboard.press("Escape")
    visit.go("Events")
    visit.open_row("Events", "order.created")
    dialog = visit.dialog("Event")
    expect(dialog.get_by_role("button", name="Copy as curl")).to_be_visible()
    for name in ("Replay", "Erase"):
        expect(dialog.get_by_role("button", name=name)).to_have_count(1 if name in buttons else 0)
    assert len(api.poll("?mode=peek")) == 1


@contextmanager
def failing_looks(console: Visit, dialog: Locator, path: str) -> Iterator[Locator]:
    """Until the end. What is said of them."""
    alert = dialog.get_by_role("alert").filter(has_text=REQUEST_ID)
    with refused(console, "GET", path, 503):
        yield alert
        expect(alert).to_be_visible()


def test_a_look_that_failed_is_forgotten_with_the_next_that_works(console: Visit, account: Account) -> None:
    event_id, dialog = drawer(console, account)
    with failing_looks(console, dialog, f"/events/{event_id}") as alert:
        pass
    expect(alert).to_have_count(0)
    expect(dialog.get_by_role("button", name="Erase")).to_be_visible()


def test_copies_are_asked_for_until_they_are_known(console: Visit, account: Account) -> None:
    account.api().call("PUT", "/inboxes/crm", {})
    account.api().send({}, "order.created")
    console.go("Events")
    expect(console.page.get_by_label("Inbox")).to_contain_text("crm")
    with failing_looks(console, console.dialog("Event"), "/inboxes"):
        console.open_row("Events", "order.created")
    expect(console.dialog("Event")).to_contain_text("Copies in named inboxes")


def test_an_event_that_could_not_be_erased_is_followed_on(console: Visit, account: Account) -> None:
    event_id, dialog = drawer(console, account)
    dialog.get_by_role("button", name="Erase").click()
    asking = console.dialog("Erase it for good?")
    with refused(console, "DELETE", f"/events/{event_id}", 503):
        console.button("Erase event").click()
        expect(asking.get_by_role("alert")).to_contain_text(REQUEST_ID)
    console.button("Cancel").click()
    account.api().call("POST", f"/events/{event_id}/replay")
    expect(dialog).to_contain_text("undelivered")


def test_a_replay_that_worked_is_no_failure_though_nobody_could_look(console: Visit, account: Account) -> None:
    event_id, dialog = drawer(console, account)
    with failing_looks(console, dialog, f"/events/{event_id}"):
        dialog.get_by_role("button", name="Replay").click()
        expect(dialog.get_by_role("status")).to_contain_text("Undelivered again")
    assert account.api().event(event_id)["status"] == "undelivered"


def test_the_way_back_from_an_event_that_was_closed(console: Visit, account: Account) -> None:
    console.go("Connect")
    _, dialog = drawer(console, account)
    console.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    console.page.go_back()
    expect(console.heading("Connect")).to_be_visible()


def test_an_event_that_was_opened_by_its_address_is_closed_where_it_is(console: Visit, account: Account) -> None:
    event_id, dialog = drawer(console, account)
    console.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    console.go("Connect")
    console.page.evaluate("address => { location.hash = address }", f"#/events?event={event_id}")
    expect(dialog).to_be_visible()
    console.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(console.heading("Events")).to_be_visible()
    console.page.go_back()
    expect(console.heading("Connect")).to_be_visible()
