"""Sending events, and the live list with its filters."""

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.responses import REQUEST_ID, failing
from tests.browser.tenant import ApiClient, Tenant

# JavaScript cannot represent this number.
EXACT = "12345678901234567890.000"


def expect_rows(console: ConsoleTab, *rows: str) -> None:
    """Expects the header and exactly these rows, each containing the text of its cells without separators."""
    expected = [re.compile(re.escape(text)) for text in ("Deliveries", *rows)]
    expect(console.table("Events").get_by_role("row")).to_have_text(expected)


def test_event_is_sent_consumed_replayed_and_erased(console: ConsoleTab, api: ApiClient) -> None:
    console.go("Send")
    console.field("Type").fill("order.created")
    console.field("Payload").fill(f'{{"amount": {EXACT}, "customer": "Zoë"}}')
    console.button("Send event").click()
    expect(console.status("Event stored")).to_be_visible()
    (event,) = api.poll("?mode=peek")
    assert EXACT in api.request("GET", f"/events/{event['id']}").text

    drawer = console.open_event("order.created")
    row = console.row("Events", "order.created")
    expect(row).to_contain_text("undelivered")
    for text in (event["id"], EXACT, "Zoë"):
        expect(drawer).to_contain_text(text)
    expect(drawer.get_by_role("button", name="Replay")).to_be_disabled()

    # The drawer and the row behind it update.
    assert [each["id"] for each in api.poll()] == [event["id"]]
    expect(drawer.get_by_role("button", name="Replay")).to_be_enabled()
    expect(drawer).not_to_contain_text("undelivered")
    console.page.keyboard.press("Escape")
    expect(row).not_to_contain_text("undelivered")
    # A click anywhere on the row opens it.
    row.get_by_role("rowheader").click()
    drawer.get_by_role("button", name="Replay").click()
    expect(drawer).to_contain_text("undelivered")
    assert api.get_event(event["id"])["status"] == "undelivered"

    drawer.get_by_role("button", name="Erase").click()
    console.confirm("Erase")
    expect(row).to_have_count(0)
    expect(drawer).to_be_hidden()
    api.request("GET", f"/events/{event['id']}", status=404)


def test_send_form_keeps_input_until_sign_out_and_shows_curl_command(tab: ConsoleTab, tenant: Tenant) -> None:
    key = tenant.create_key()
    tab.sign_in(key)
    tab.go("Send")
    command = tab.page.get_by_role("group", name="curl command")
    expect(command).to_contain_text("order.created")
    tab.field("Payload").fill('{"n": 1.0}')
    expect(command).to_contain_text('{"n":1.0}')
    expect(tab.button("Copy")).to_be_enabled()
    tab.field("Payload").fill('{"half": ')
    expect(command).to_have_text("Fix the errors in the form to get the command.")
    expect(tab.button("Copy")).to_be_disabled()
    tab.go("Keys")
    tab.go("Send")
    expect(tab.field("Payload")).to_have_value('{"half": ')
    expect(tab.field("Payload")).to_have_attribute("aria-invalid", "true")
    tab.button("Sign out").click()
    tab.sign_in(key)
    tab.go("Send")
    expect(tab.field("Payload")).not_to_have_value('{"half": ')


def test_live_updates_can_be_turned_off(console: ConsoleTab, api: ApiClient) -> None:
    console.page.clock.install()
    console.go("Events")
    live_updates = console.page.get_by_label("Live updates")
    expect(live_updates).to_be_checked()
    expect_rows(console, "No events yet.")
    for event_type in ("first.seen", "second.seen"):
        api.send({}, event_type)
    expect_rows(console, "second.seen", "first.seen")
    live_updates.uncheck()
    api.send({}, "third.seen")
    requests: list[str] = []
    console.page.on("request", lambda request: requests.append(request.url))
    console.page.clock.run_for(60_000)
    expect_rows(console, "second.seen", "first.seen")
    assert requests == []
    live_updates.check()
    expect(console.row("Events", "third.seen")).to_be_visible()


def test_events_are_filtered_by_status_type_and_time(console: ConsoleTab, api: ApiClient) -> None:
    api.send({}, "order.created")
    api.poll()
    api.send({}, "order.paid")
    api.send({}, "order.paid.twice")
    console.go("Events")
    expect_rows(console, "order.paid.twiceundelivered", "order.paidundelivered", "order.createddelivered")
    console.field("Status").select_option("delivered")
    expect_rows(console, "order.createddelivered")
    console.field("Status").select_option("undelivered")
    expect_rows(console, "order.paid.twiceundelivered", "order.paidundelivered")
    console.field("Type").fill("order.paid")
    expect_rows(console, "order.paidundelivered")
    for field, days in [("Since", 1), ("Until", -1)]:
        console.field(field).fill(_local_minute(days))
        expect_rows(console, "No events match these filters.")
        console.field(field).fill(_local_minute(-days))
        expect_rows(console, "order.paidundelivered")


def test_invalid_type_filter_is_explained(console: ConsoleTab, api: ApiClient) -> None:
    api.send({}, "order.paid")
    console.page.clock.install()
    console.go("Events")
    expect_rows(console, "order.paid")
    console.field("Type").fill("order.*")
    expect_rows(console, "Not a valid event type.")
    console.page.reload()
    expect_rows(console, "Not a valid event type.")
    expect(console.field("Type")).to_have_attribute("aria-invalid", "true")
    console.nav.get_by_role("link", name="Events").click()
    expect(console.field("Type")).to_have_value("")
    expect(console.field("Type")).not_to_have_attribute("aria-invalid", "true")
    # Leaving the view before the filter applies does not change the URL of the next view.
    console.field("Type").fill("order.paid")
    console.go("Connect")
    console.page.clock.run_for(1000)
    assert console.page.url.endswith("#/connect")


def test_older_pages_are_loaded_and_refreshed(console: ConsoleTab, api: ApiClient) -> None:
    api.send_many(60)
    oldest = api.get("/events?limit=60")[45]["id"]
    rows = console.table("Events").get_by_role("row")
    console.go("Events")
    expect(rows).to_have_count(1 + 25)
    with failing(console, "GET", "/events", 503, "limit=50"):
        for _ in range(2):
            with console.page.expect_response(re.compile("limit=50")):
                console.button("Load more").click()
            expect(console.alert(REQUEST_ID)).to_be_visible()
    expect(rows).to_have_count(1 + 50)
    expect(console.alert(REQUEST_ID)).to_have_count(0)

    expect(console.row("Events", oldest)).to_contain_text("undelivered")
    api.poll("?limit=60")
    expect(console.row("Events", oldest)).not_to_contain_text("undelivered")
    api.request("DELETE", f"/events/{oldest}")
    expect(console.row("Events", oldest)).to_have_count(0)
    expect(rows).to_have_count(1 + 50)
    console.button("Load more").click()
    expect(rows).to_have_count(1 + 59)
    expect(console.button("Load more")).to_be_hidden()


def test_without_live_updates_load_more_adds_older_events_only(console: ConsoleTab, api: ApiClient) -> None:
    api.send_many(60)
    console.go("Events")
    expect(console.button("Load more")).to_be_visible()
    console.page.get_by_label("Live updates").uncheck()
    api.send_many(60, "came.later")
    console.button("Load more").click()
    expect(console.row("Events", "order.created")).to_have_count(50)
    expect(console.row("Events", "came.later")).to_have_count(0)


def _local_minute(days_from_now: int) -> str:
    """Returns a value for an input of type datetime-local."""
    return (datetime.now(UTC) + timedelta(days=days_from_now)).strftime("%Y-%m-%dT%H:%M")
