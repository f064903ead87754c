"""An event's life, seen and led from the console."""

import re
from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

from tests.browser.console_tab import Visit
from tests.browser.responses import REQUEST_ID, refused
from tests.browser.tenant import Account

EXACT = "12345678901234567890.000"


def expect_listed(console: Visit, *rows: str) -> None:
    """Just these, each with this in it; the texts of its cells stand side by side."""
    wanted = [re.compile(re.escape(text)) for text in ("Deliveries", *rows)]
    expect(console.table("Events").get_by_role("row")).to_have_text(wanted)


def test_an_event_that_is_sent_is_seen_consumed_replayed_and_erased(console: Visit, account: Account) -> None:
    api = account.api()
    console.go("Send")
    console.field("Type").fill("order.created")
    console.field("Payload").fill(f'{{"amount": {EXACT}, "customer": "Zoë"}}')
    console.button("Send event").click()
    expect(console.page.get_by_role("status").filter(has_text="Stored")).to_be_visible()
    (event,) = api.poll("?mode=peek")
    assert EXACT in api.call("GET", f"/events/{event['id']}").text

    console.go("Events")
    row = console.row("Events", "order.created")
    expect(row).to_contain_text("undelivered")
    console.open_row("Events", "order.created")
    dialog = console.dialog("Event")
    expect(dialog).to_contain_text(event["id"])
    expect(dialog).to_contain_text(EXACT)
    expect(dialog).to_contain_text("Zoë")
    expect(dialog.get_by_role("button", name="Replay")).to_be_disabled()

    # The drawer and the row behind it follow along.
    assert [each["id"] for each in api.poll()] == [event["id"]]
    expect(dialog.get_by_role("button", name="Replay")).to_be_enabled()
    expect(dialog).not_to_contain_text("undelivered")
    console.page.keyboard.press("Escape")
    expect(row).not_to_contain_text("undelivered")
    # Anywhere on the row, and not on its text alone.
    row.get_by_role("rowheader").click()
    dialog.get_by_role("button", name="Replay").click()
    expect(dialog).to_contain_text("undelivered")
    assert api.event(event["id"])["status"] == "undelivered"

    dialog.get_by_role("button", name="Erase").click()
    console.confirm("Erase")
    expect(row).to_have_count(0)
    expect(dialog).to_be_hidden()
    api.call("GET", f"/events/{event['id']}", status=404)


def test_the_line_for_curl_is_of_what_is_on_the_screen(console: Visit) -> None:
    console.go("Send")
    line = console.page.get_by_role("group", name="The same with curl")
    expect(line).to_contain_text("order.created")
    console.field("Payload").fill('{"n": 1,}')
    expect(line).to_have_text("Not before it could be sent.")
    expect(console.button("Copy")).to_be_disabled()
    console.field("Payload").fill('{"n": 1.0}')
    expect(line).to_contain_text('{"n":1.0}')
    expect(console.button("Copy")).to_be_enabled()


def test_an_event_that_is_erased_elsewhere_is_gone_from_the_drawer(console: Visit, account: Account) -> None:
    api = account.api()
    event_id = api.send({"n": 1}, "order.created")
    console.go("Events")
    console.open_row("Events", "order.created")
    dialog = console.dialog("Event")
    expect(dialog.get_by_role("button", name="Erase")).to_be_visible()
    console.watch.announce("GET", f"/events/{event_id}", 404)
    api.call("DELETE", f"/events/{event_id}", status=204)
    expect(dialog.get_by_role("alert")).to_contain_text("There is nothing here")
    expect(dialog.get_by_role("button", name="Erase")).to_have_count(0)


def test_nothing_is_erased_without_a_second_word(console: Visit, account: Account) -> None:
    api = account.api()
    event_id = api.send({"n": 1}, "order.created")
    console.go("Events")
    console.open_row("Events", "order.created")
    console.dialog("Event").get_by_role("button", name="Erase").click()
    console.button("Cancel").click()
    expect(console.row("Events", "order.created")).to_be_visible()
    assert api.event(event_id)["status"] == "undelivered"


def test_events_arrive_while_one_looks(console: Visit, account: Account) -> None:
    api = account.api()
    console.go("Events")
    expect(console.page.get_by_label("Follow")).to_be_checked()
    expect_listed(console, "No events yet.")
    for event_type in ("first.seen", "second.seen"):
        api.send({}, event_type)
    expect_listed(console, "second.seen", "first.seen")


def test_without_following_the_table_stays_as_it_is(console: Visit, account: Account) -> None:
    api = account.api()
    api.send({}, "first.seen")
    console.page.clock.install()
    console.go("Events")
    expect(console.row("Events", "first.seen")).to_be_visible()
    console.page.get_by_label("Follow").uncheck()
    api.send({}, "second.seen")
    asked: list[str] = []
    console.page.on("request", lambda request: asked.append(request.url))
    console.page.clock.run_for(60_000)
    expect_listed(console, "first.seen")
    assert asked == []
    console.page.get_by_label("Follow").check()
    expect(console.row("Events", "second.seen")).to_be_visible()


def test_events_are_filtered_by_status_and_type(console: Visit, account: Account) -> None:
    api = account.api()
    api.send({}, "order.created")
    api.poll()
    api.send({}, "order.paid")
    api.send({}, "order.paid.twice")
    console.go("Events")
    expect_listed(console, "order.paid.twiceundelivered", "order.paidundelivered", "order.createddelivered")
    console.field("Status").select_option("delivered")
    expect_listed(console, "order.createddelivered")
    console.field("Status").select_option("undelivered")
    expect_listed(console, "order.paid.twiceundelivered", "order.paidundelivered")
    console.field("Type").fill("order.paid")
    expect_listed(console, "order.paidundelivered")


def test_a_type_that_no_event_can_have_shows_none(console: Visit, account: Account) -> None:
    account.api().send({}, "order.paid")
    console.go("Events")
    console.field("Type").fill("order.paid")
    expect_listed(console, "order.paid")
    console.field("Type").fill("order.*")
    expect_listed(console, "No event can have this type.")
    console.page.reload()
    expect_listed(console, "No event can have this type.")
    expect(console.field("Type")).to_have_attribute("aria-invalid", "true")


def test_events_are_filtered_by_time(console: Visit, account: Account) -> None:
    account.api().send({}, "order.created")
    console.go("Events")
    for field, days in [("Since", 1), ("Until", -1)]:
        console.field(field).fill(_minute(days))
        expect_listed(console, "No event matches these filters.")
        console.field(field).fill(_minute(-days))
        expect_listed(console, "order.created")


def test_older_events_are_loaded_page_by_page(console: Visit, account: Account) -> None:
    account.api().send_many(60)
    console.go("Events")
    rows = console.table("Events").get_by_role("row")
    for shown in (25, 50):
        expect(rows).to_have_count(1 + shown)
        console.button("Load more").click()
    expect(rows).to_have_count(1 + 60)
    expect(console.button("Load more")).to_be_hidden()


def test_older_events_are_brought_up_to_date_too(console: Visit, account: Account) -> None:
    api = account.api()
    api.send_many(60)
    oldest = api.call("GET", "/events?limit=60").json()[45]["id"]
    console.go("Events")
    expect(console.button("Load more")).to_be_visible()
    console.button("Load more").click()
    expect(console.row("Events", oldest)).to_contain_text("undelivered")
    api.poll("?limit=60")
    expect(console.row("Events", oldest)).not_to_contain_text("undelivered")
    api.call("DELETE", f"/events/{oldest}")
    expect(console.row("Events", oldest)).to_have_count(0)
    expect(console.table("Events").get_by_role("row")).to_have_count(1 + 50)


def test_without_following_more_is_more_of_what_was_there(console: Visit, account: Account) -> None:
    api = account.api()
    api.send_many(60)
    console.go("Events")
    expect(console.button("Load more")).to_be_visible()
    console.page.get_by_label("Follow").uncheck()
    api.send_many(60, "came.later")
    console.button("Load more").click()
    expect(console.row("Events", "order.created")).to_have_count(50)
    expect(console.row("Events", "came.later")).to_have_count(0)


def test_what_came_in_the_way_of_more_is_said_beside_it_until_it_is_there(console: Visit, account: Account) -> None:
    account.api().send_many(60)
    console.go("Events")
    with refused(console, "GET", "/events", 503, "limit=50"):
        for _ in range(2):
            with console.page.expect_response(re.compile("limit=50")):
                console.button("Load more").click()
            expect(console.page.get_by_role("alert").filter(has_text=REQUEST_ID)).to_be_visible()
    rows = console.table("Events").get_by_role("row")
    expect(rows).to_have_count(1 + 50)
    expect(console.page.get_by_role("alert").filter(has_text=REQUEST_ID)).to_have_count(0)


def test_what_was_typed_before_leaving_changes_no_other_address(console: Visit) -> None:
    console.page.clock.install()
    console.go("Events")
    console.field("Type").fill("order.paid")
    console.go("Connect")
    console.page.clock.run_for(1000)
    assert console.page.url.endswith("#/connect")


def test_a_fault_goes_with_what_was_typed(console: Visit) -> None:
    console.go("Events")
    console.field("Status").select_option("dead")
    console.field("Type").fill("no type!")
    expect(console.field("Type")).to_have_attribute("aria-invalid", "true")
    console.nav.get_by_role("link", name="Events").click()
    expect(console.field("Type")).to_have_value("")
    expect(console.field("Type")).not_to_have_attribute("aria-invalid", "true")


def test_what_is_typed_is_kept_until_one_signs_out(visit: Visit, account: Account) -> None:
    key = account.key()
    visit.sign_in(key)
    visit.go("Send")
    visit.field("Payload").fill('{"half": ')
    visit.go("Keys")
    visit.go("Send")
    expect(visit.field("Payload")).to_have_value('{"half": ')
    expect(visit.field("Payload")).to_have_attribute("aria-invalid", "true")
    visit.button("Sign out").click()
    visit.sign_in(key)
    visit.go("Send")
    expect(visit.field("Payload")).not_to_have_value('{"half": ')


def _minute(days_from_now: int) -> str:
    """As a field for date and time takes it."""
    return (datetime.now(UTC) + timedelta(days=days_from_now)).strftime("%Y-%m-%dT%H:%M")
