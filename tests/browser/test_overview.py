"""The figures of the Overview."""

import re

from playwright.sync_api import Locator, expect

from tests.browser.accessibility import find_violations
from tests.browser.console_tab import ConsoleTab
from tests.browser.tenant import ApiClient


def find_tile(console: ConsoleTab, name: str) -> Locator:
    term = console.page.get_by_role("term").filter(has_text=re.compile(f"^{name}$"))
    return term.locator("..").get_by_role("definition").first


def test_figures_match_the_events(console: ConsoleTab, api: ApiClient) -> None:
    api.request("PUT", "/inboxes/crm", {"event_types": ["order.*"]})
    for event_type in ("order.created", "order.created", "invoice.paid"):
        api.send({}, event_type)
    api.poll("?limit=1")
    console.go("Events")
    console.go("Overview")
    expect(find_tile(console, "Undelivered")).to_have_text("2")
    expect(find_tile(console, "Oldest undelivered")).to_have_text(re.compile(r"^\d+ (s|min)"))
    expect(find_tile(console, "Received")).to_have_text("3")
    expect(find_tile(console, "Delivered")).to_have_text("1")
    expect(console.row("By event type", "order.created")).to_contain_text("2")
    expect(console.row("By event type", "invoice.paid")).to_contain_text("1")
    expect(console.row("By inbox", "crm")).to_contain_text("2")


def test_notice_explains_that_default_is_disabled(console: ConsoleTab, api: ApiClient) -> None:
    api.request("PUT", "/inboxes/crm", {})
    api.request("PUT", "/inboxes/default", {"enabled": False})
    for _ in range(2):
        api.send({}, "order.created")
    console.go("Events")
    expect(console.row("Events", "order.created").first).to_contain_text("delivered")
    console.open_row("Events", "order.created")
    expect(console.dialog("Event")).to_contain_text("Not delivered here: the default inbox was disabled")
    console.page.keyboard.press("Escape")
    console.go("Overview")
    expect(console.main.get_by_text("The default inbox is disabled")).to_be_visible()
    expect(find_tile(console, "Undelivered")).to_have_text("0")
    expect(find_tile(console, "Received")).to_have_text("2")
    expect(find_tile(console, "Delivered")).to_have_text("0")
    expect(console.row("By inbox", "default").get_by_role("rowheader")).to_have_text("default disabled")
    expect(console.row("By inbox", "crm")).to_contain_text("2")
    assert find_violations(console.page) == []
