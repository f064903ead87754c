"""The drawer with the details of one event."""

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.responses import REQUEST_ID, failing
from tests.browser.tenant import ApiClient, Tenant


def open_delivered_event(console: ConsoleTab, api: ApiClient) -> tuple[str, Locator]:
    """Returns the event's ID and its drawer."""
    event_id = api.send({"order": 1001}, "order.created")
    api.poll()
    drawer = console.open_event("order.created")
    expect(drawer.get_by_role("button", name="Replay")).to_be_enabled()
    return event_id, drawer


@pytest.mark.parametrize(
    ("scopes", "buttons"),
    [
        (("events:read",), []),
        (("inbox:read",), ["Replay"]),
        (("events:read", "tenant:manage"), ["Erase"]),
    ],
)
def test_actions_depend_on_the_scopes_of_the_key(
    tab: ConsoleTab, tenant: Tenant, api: ApiClient, scopes: tuple[str, ...], buttons: list[str]
) -> None:
    api.send({"order": 1001}, "order.created")
    tab.sign_in(tenant.create_key(*scopes))
    expect(tab.heading("Overview")).to_be_visible()
    tab.go("Inboxes")
    tab.row("Inboxes", "default").get_by_role("button", name="Peek").click()
    expect(tab.dialog("Undelivered in default")).to_contain_text("1001")
    tab.page.keyboard.press("Escape")
    drawer = tab.open_event("order.created")
    expect(drawer.get_by_role("button", name="Copy as curl")).to_be_visible()
    for name in ("Replay", "Erase"):
        expect(drawer.get_by_role("button", name=name)).to_have_count(1 if name in buttons else 0)
    assert len(api.poll("?mode=peek")) == 1


def test_replay_succeeds_although_refreshing_fails(console: ConsoleTab, api: ApiClient) -> None:
    event_id, drawer = open_delivered_event(console, api)
    alert = drawer.get_by_role("alert").filter(has_text=REQUEST_ID)
    with failing(console, "GET", f"/events/{event_id}", 503):
        drawer.get_by_role("button", name="Replay").click()
        expect(drawer.get_by_role("status")).to_contain_text("Event replayed")
        expect(alert).to_be_visible()
    assert api.get_event(event_id)["status"] == "undelivered"
    expect(alert).to_have_count(0)
    expect(drawer.get_by_role("button", name="Erase")).to_be_visible()


def test_failed_request_for_copies_is_retried(console: ConsoleTab, api: ApiClient) -> None:
    api.request("PUT", "/inboxes/crm", {})
    api.send({}, "order.created")
    console.go("Events")
    expect(console.page.get_by_label("Inbox")).to_contain_text("crm")
    drawer = console.dialog("Event")
    with failing(console, "GET", "/inboxes", 503):
        console.open_row("Events", "order.created")
        expect(drawer.get_by_role("alert").filter(has_text=REQUEST_ID)).to_be_visible()
    expect(drawer).to_contain_text("Copies in named inboxes")


def test_event_is_erased_only_after_confirmation(console: ConsoleTab, api: ApiClient) -> None:
    event_id, drawer = open_delivered_event(console, api)
    path = f"/events/{event_id}"
    drawer.get_by_role("button", name="Erase").click()
    with failing(console, "DELETE", path, 503):
        console.button("Erase event").click()
        expect(console.confirmation.get_by_role("alert")).to_contain_text(REQUEST_ID)
    console.button("Cancel").click()
    assert api.get_event(event_id)["status"] == "delivered"
    # The drawer still refreshes, and notices that another program erases the event.
    api.request("POST", f"{path}/replay")
    expect(drawer).to_contain_text("undelivered")
    console.monitor.expect_error("GET", path, 404)
    api.request("DELETE", path)
    title = api.request("GET", path, status=404).json()["title"]
    expect(drawer.get_by_role("alert").filter(has_text=title)).to_be_visible()
    expect(drawer.get_by_role("button", name="Erase")).to_have_count(0)


def test_drawer_works_with_back_and_with_its_url(console: ConsoleTab, api: ApiClient) -> None:
    console.go("Connect")
    event_id, drawer = open_delivered_event(console, api)
    console.page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    console.page.go_back()
    expect(console.heading("Connect")).to_be_visible()

    console.page.evaluate("hash => { location.hash = hash }", f"#/events?event={event_id}")
    expect(drawer).to_be_visible()
    console.page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(console.heading("Events")).to_be_visible()
    console.page.go_back()
    expect(console.heading("Connect")).to_be_visible()
