"""Named inboxes: made, looked into and removed from the console."""

import re

from playwright.sync_api import expect

from tests.browser.console_tab import Visit
from tests.browser.tenant import Account


def create(console: Visit, name: str, event_types: str) -> None:
    form = console.page.get_by_role("region", name="Create an inbox")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Event types").fill(event_types)
    form.get_by_role("button", name="Create inbox").click()


def test_an_inbox_is_made_filled_and_deleted(console: Visit, account: Account) -> None:
    api = account.api()
    console.go("Inboxes")
    create(console, "crm", "order.*, invoice.paid")
    row = console.row("Inboxes", "crm")
    expect(row).to_contain_text("order.*")
    made = api.call("GET", "/inboxes/crm").json()
    assert made["event_types"] == ["order.*", "invoice.paid"]

    for number, event_type in enumerate(["order.created", "order.paid", "customer.left"]):
        api.send({"number": number}, event_type)
    console.go("Overview")
    console.go("Inboxes")
    expect(row.get_by_role("cell", name="2", exact=True)).to_be_visible()
    row.get_by_role("button", name="Peek").click()
    dialog = console.dialog("Waiting in crm")
    expect(dialog).to_contain_text("order.created")
    expect(dialog).to_contain_text("order.paid")
    expect(dialog).not_to_contain_text("customer.left")
    console.page.keyboard.press("Escape")
    assert [event["deliveries"] for event in api.call("GET", "/inbox/crm?mode=peek").json()] == [0, 0]

    row.get_by_role("button", name="Delete").click()
    console.confirm("Delete")
    expect(row).to_have_count(0)
    api.call("GET", "/inboxes/crm", status=404)


def test_an_inbox_that_is_there_is_changed_after_a_second_word(console: Visit, account: Account) -> None:
    api = account.api()
    api.call("PUT", "/inboxes/crm", {"event_types": ["order.*"]})
    console.go("Inboxes")
    row = console.row("Inboxes", "crm")
    expect(row).to_be_visible()
    create(console, "crm", "other.*")
    console.button("Cancel").click()
    assert api.call("GET", "/inboxes/crm").json()["event_types"] == ["order.*"]
    console.button("Create inbox").click()
    console.confirm("Change")
    expect(row).to_contain_text("other.*")
    assert api.call("GET", "/inboxes/crm").json()["event_types"] == ["other.*"]


def test_a_name_that_cannot_be_is_explained_beside_it(console: Visit) -> None:
    console.go("Inboxes")
    create(console, "No Name", "")
    expect(console.page.get_by_label("Name")).to_have_accessible_description(re.compile("the first no hyphen"))
    expect(console.page.get_by_label("Name")).to_be_focused()


def test_default_is_turned_off_and_on(console: Visit, account: Account) -> None:
    api = account.api()
    api.call("PUT", "/inboxes/crm", {"event_types": ["order.*"]})
    console.go("Inboxes")
    row = console.row("Inboxes", "default")
    row.get_by_role("button", name="Turn off").click()
    console.confirm("Turn off")
    expect(row.get_by_role("rowheader")).to_have_text("default off")
    assert api.call("GET", "/inboxes/default").json()["enabled"] is False

    row.get_by_role("button", name="Turn on").click()
    console.button("Cancel").click()
    assert api.call("GET", "/inboxes/default").json()["enabled"] is False
    row.get_by_role("button", name="Turn on").click()
    console.confirm("Turn on")
    expect(row.get_by_role("rowheader")).to_have_text("default")
    assert api.call("GET", "/inboxes/default").json()["enabled"] is True


def test_a_key_that_may_not_manage_sees_that_default_is_off(visit: Visit, account: Account) -> None:
    account.api().call("PUT", "/inboxes/default", {"enabled": False})
    visit.sign_in(account.key("inbox:read"))
    visit.go("Inboxes")
    row = visit.row("Inboxes", "default")
    expect(row.get_by_role("rowheader")).to_have_text("default off")
    expect(row.get_by_role("button", name="Peek")).to_be_visible()
    expect(row.get_by_role("button", name="Turn on")).to_have_count(0)
