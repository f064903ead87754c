"""The Inboxes view."""

import re

from playwright.sync_api import expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.tenant import ApiClient


def submit_form(console: ConsoleTab, name: str, event_types: str) -> None:
    form = console.page.get_by_role("region", name="Create an inbox")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Event types").fill(event_types)
    form.get_by_role("button", name="Create inbox").click()


def test_inbox_is_created_peeked_and_deleted(console: ConsoleTab, api: ApiClient) -> None:
    console.go("Inboxes")
    submit_form(console, "crm", "order.*, invoice.paid")
    row = console.row("Inboxes", "crm")
    expect(row).to_contain_text("order.*")
    assert api.get("/inboxes/crm")["event_types"] == ["order.*", "invoice.paid"]

    for number, event_type in enumerate(["order.created", "order.paid", "customer.left"]):
        api.send({"number": number}, event_type)
    console.go("Overview")
    console.go("Inboxes")
    expect(row.get_by_role("cell", name="2", exact=True)).to_be_visible()
    row.get_by_role("button", name="Peek").click()
    dialog = console.dialog("Undelivered in crm")
    expect(dialog).to_contain_text("order.created")
    expect(dialog).to_contain_text("order.paid")
    expect(dialog).not_to_contain_text("customer.left")
    console.page.keyboard.press("Escape")
    assert [event["deliveries"] for event in api.get("/inbox/crm?mode=peek")] == [0, 0]

    row.get_by_role("button", name="Delete").click()
    console.confirm("Delete")
    expect(row).to_have_count(0)
    api.request("GET", "/inboxes/crm", status=404)


def test_existing_inbox_is_changed_only_after_confirmation(console: ConsoleTab, api: ApiClient) -> None:
    api.request("PUT", "/inboxes/crm", {"event_types": ["order.*"]})
    console.go("Inboxes")
    row = console.row("Inboxes", "crm")
    expect(row).to_be_visible()
    submit_form(console, "No Name", "other.*")
    name = console.page.get_by_label("Name")
    expect(name).to_have_accessible_description(re.compile("first character can’t be a hyphen"))
    expect(name).to_be_focused()
    submit_form(console, "crm", "other.*")
    console.button("Cancel").click()
    assert api.get("/inboxes/crm")["event_types"] == ["order.*"]
    console.button("Create inbox").click()
    console.confirm("Change")
    expect(row).to_contain_text("other.*")
    assert api.get("/inboxes/crm")["event_types"] == ["other.*"]


def test_default_inbox_is_disabled_and_enabled(console: ConsoleTab, api: ApiClient) -> None:
    def is_enabled() -> bool:
        enabled: bool = api.get("/inboxes/default")["enabled"]
        return enabled

    api.request("PUT", "/inboxes/crm", {"event_types": ["order.*"]})
    console.go("Inboxes")
    row = console.row("Inboxes", "default")
    row.get_by_role("button", name="Disable").click()
    console.confirm("Disable")
    expect(row.get_by_role("rowheader")).to_have_text("default disabled")
    assert is_enabled() is False
    row.get_by_role("button", name="Enable").click()
    console.button("Cancel").click()
    assert is_enabled() is False
    row.get_by_role("button", name="Enable").click()
    console.confirm("Enable")
    expect(row.get_by_role("rowheader")).to_have_text("default")
    assert is_enabled() is True
