"""Everything without a mouse, and the focus where one expects it."""

import uuid

from playwright.sync_api import Locator, expect

from tests.browser.console_tab import Visit
from tests.browser.tenant import Account, Api


def tab_to(visit: Visit, target: Locator) -> None:
    for _ in range(40):
        visit.page.keyboard.press("Tab")
        if target.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"No way to {target} with the keyboard")


def test_from_signing_in_to_an_event_and_back(visit: Visit, account: Account) -> None:
    account.api().send({"order": 1001}, "order.created")
    keyboard = visit.page.keyboard
    expect(visit.page.get_by_label("API key")).to_be_focused()
    keyboard.insert_text(account.key())
    keyboard.press("Enter")
    expect(visit.nav).to_be_visible()
    tab_to(visit, visit.nav.get_by_role("link", name="Events"))
    keyboard.press("Enter")
    expect(visit.heading("Events")).to_be_visible()
    opener = visit.row("Events", "order.created").get_by_role("button").first
    expect(opener).to_be_visible()
    tab_to(visit, opener)
    keyboard.press("Enter")
    dialog = visit.dialog("Event")
    expect(dialog).to_contain_text("1001")
    for _ in range(12):
        keyboard.press("Tab")
        # Or on the browser itself, which a page sees as its body.
        assert dialog.evaluate("it => it.contains(document.activeElement) || document.body === document.activeElement")
    keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(opener).to_be_focused()


def test_the_way_past_the_navigation(console: Visit) -> None:
    console.page.reload()
    expect(console.nav).to_be_visible()
    console.page.keyboard.press("Tab")
    skip = console.page.get_by_role("link", name="Skip")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    console.page.keyboard.press("Enter")
    expect(console.page.get_by_role("main")).to_be_focused()


def test_the_focus_stays_on_what_can_be_done_with_an_event(console: Visit, account: Account) -> None:
    api = account.api()
    api.send({"order": 1001}, "order.created")
    console.go("Events")
    console.open_row("Events", "order.created")
    dialog = console.dialog("Event")
    curl, replay = (dialog.get_by_role("button", name=name) for name in ("Copy as curl", "Replay"))
    curl.focus()
    api.poll()
    expect(replay).to_be_enabled()
    expect(curl).to_be_focused()
    replay.press("Enter")
    expect(dialog).to_contain_text("undelivered")
    expect(replay).to_be_disabled()
    expect(replay).to_be_focused()


def test_the_focus_stays_with_a_tenant_that_takes_its_next_step(visit: Visit, admin: Api) -> None:
    tenant_id = f"tenant-{uuid.uuid4().hex[:8]}"
    admin.call("POST", "/admin/tenants", {"tenant_id": tenant_id, "email": f"{tenant_id}@example.com"})
    visit.sign_in(admin.key)
    visit.go("Tenants")
    visit.open_row("Tenants", tenant_id)
    dialog = visit.dialog("Tenant")
    dialog.get_by_role("button", name="Validate").press("Enter")
    expect(dialog.get_by_role("button", name="Register")).to_be_visible()
    expect(dialog.get_by_role("group", name="Details")).to_be_focused()


def test_the_focus_goes_on_where_a_payload_is_unfolded(console: Visit, account: Account) -> None:
    text = "long " * 200
    account.api().send({"text": text} | {f"member {n}": n for n in range(150)}, "order.created")
    console.go("Events")
    console.open_row("Events", "order.created")
    dialog = console.dialog("Event")
    dialog.get_by_role("button", name="Show all").press("Enter")
    expect(dialog.locator(":focus")).to_contain_text(text)
    dialog.get_by_role("button", name="Show more").press("Enter")
    expect(dialog.locator(":focus")).to_have_text('"member 99": 99')
