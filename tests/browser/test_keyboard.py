"""The console without a mouse: everything is reachable, and the focus is never lost."""

from playwright.sync_api import Locator, expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.tenant import ApiClient, Tenant


def tab_to(tab: ConsoleTab, target: Locator) -> None:
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"{target} cannot be reached with Tab")


def test_event_is_opened_and_closed_with_the_keyboard(tab: ConsoleTab, tenant: Tenant, api: ApiClient) -> None:
    api.send({"order": 1001}, "order.created")
    keyboard = tab.page.keyboard
    expect(tab.page.get_by_label("API key")).to_be_focused()
    keyboard.insert_text(tenant.create_key())
    keyboard.press("Enter")
    expect(tab.nav).to_be_visible()
    tab_to(tab, tab.nav.get_by_role("link", name="Events"))
    keyboard.press("Enter")
    expect(tab.heading("Events")).to_be_visible()
    opener = tab.row("Events", "order.created").get_by_role("button").first
    expect(opener).to_be_visible()
    tab_to(tab, opener)
    keyboard.press("Enter")
    drawer = tab.dialog("Event")
    expect(drawer).to_contain_text("1001")
    for _ in range(12):
        keyboard.press("Tab")
        # document.activeElement is the body while the focus is on the browser's own controls.
        assert drawer.evaluate("it => it.contains(document.activeElement) || document.body === document.activeElement")
    keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(opener).to_be_focused()


def test_skip_link_leads_to_the_content(console: ConsoleTab) -> None:
    console.page.reload()
    expect(console.nav).to_be_visible()
    console.page.keyboard.press("Tab")
    skip = console.page.get_by_role("link", name="Skip")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    console.page.keyboard.press("Enter")
    expect(console.main).to_be_focused()


def test_focus_survives_updates_of_an_event(console: ConsoleTab, api: ApiClient) -> None:
    text = "long " * 200
    api.send({"text": text} | {f"member {n}": n for n in range(150)}, "order.created")
    drawer = console.open_event("order.created")
    drawer.get_by_role("button", name="Show all").press("Enter")
    expect(drawer.locator(":focus")).to_contain_text(text)
    drawer.get_by_role("button", name="Show more").press("Enter")
    expect(drawer.locator(":focus")).to_have_text('"member 99": 99')

    curl, replay = (drawer.get_by_role("button", name=name) for name in ("Copy as curl", "Replay"))
    curl.focus()
    api.poll()
    expect(replay).to_be_enabled()
    expect(curl).to_be_focused()
    replay.press("Enter")
    expect(drawer).to_contain_text("undelivered")
    expect(replay).to_be_disabled()
    expect(replay).to_be_focused()
