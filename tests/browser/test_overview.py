"""The figures of the first view are the ones of the service."""

import re

from playwright.sync_api import Locator, expect

from tests.browser.accessibility import barriers
from tests.browser.console_tab import Visit
from tests.browser.tenant import Account


def tile(console: Visit, name: str) -> Locator:
    """The figure in it."""
    term = console.page.get_by_role("term").filter(has_text=re.compile(f"^{name}$"))
    return term.locator("..").get_by_role("definition").first


def test_a_new_tenant_is_told_how_to_begin(console: Visit) -> None:
    console.go("Overview")
    expect(console.page.get_by_role("main")).to_contain_text(re.compile("nothing has come in yet", re.IGNORECASE))


def test_the_figures_are_right(console: Visit, account: Account) -> None:
    api = account.api()
    api.call("PUT", "/inboxes/crm", {"event_types": ["order.*"]})
    for event_type in ("order.created", "order.created", "invoice.paid"):
        api.send({}, event_type)
    api.poll("?limit=1")
    console.go("Events")
    console.go("Overview")
    expect(tile(console, "Undelivered now")).to_have_text("2")
    expect(tile(console, "Oldest waiting")).to_have_text(re.compile(r"^\d+ (s|min)"))
    expect(tile(console, "Received")).to_have_text("3")
    expect(tile(console, "Delivered")).to_have_text("1")
    expect(console.row("By event type", "order.created")).to_contain_text("2")
    expect(console.row("By event type", "invoice.paid")).to_contain_text("1")
    expect(console.row("By inbox", "crm")).to_contain_text("2")


def test_a_tenant_that_has_turned_default_off_is_told_where_its_events_are(console: Visit, account: Account) -> None:
    api = account.api()
    api.call("PUT", "/inboxes/crm", {})
    api.call("PUT", "/inboxes/default", {"enabled": False})
    for _ in range(2):
        api.send({}, "order.created")
    console.go("Events")
    expect(console.row("Events", "order.created").first).to_contain_text("delivered")
    console.open_row("Events", "order.created")
    expect(console.dialog("Event")).to_contain_text("Not handed out: the inbox default was off")
    console.page.keyboard.press("Escape")
    console.go("Overview")
    expect(console.page.get_by_role("main")).to_contain_text("The inbox default is off")
    expect(tile(console, "Undelivered now")).to_have_text("0")
    expect(tile(console, "Received")).to_have_text("2")
    expect(tile(console, "Delivered")).to_have_text("0")
    expect(console.row("By inbox", "default").get_by_role("rowheader")).to_have_text("default off")
    expect(console.row("By inbox", "crm")).to_contain_text("2")
    assert barriers(console.page) == []
