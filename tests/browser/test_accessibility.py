"""Every view and dialog passes an accessibility scan, in light and dark, and fits on a desktop and a phone."""

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.accessibility import find_violations
from tests.browser.console_tab import VIEWS, ConsoleTab
from tests.browser.tenant import ApiClient, Tenant
from tests.browser.test_sign_in import UNKNOWN_KEY

SIZES = {"desktop": ViewportSize(width=1280, height=800), "phone": ViewportSize(width=390, height=844)}
LONG_TYPE = "a.very.long.type.of.event.that.a.producer.has.composed.from.very.many.words/and-then-some-more"

# Text that a view shows when it has finished loading.
LOADED = {
    "Overview": "crm",
    "Events": "order.leased",
    "Inboxes": "crm",
    "Send": "Send event",
    "Keys": "a name that goes on",
    "Connect": "Poll with leases",
}


@pytest.fixture(params=SIZES, ids=str)
def sized_tab(tab: ConsoleTab, request: pytest.FixtureRequest) -> ConsoleTab:
    tab.page.set_viewport_size(SIZES[request.param])
    return tab


def expect_accessible(tab: ConsoleTab) -> None:
    assert tab.measure_overflow_px() == 0
    for dark in (False, True):
        tab.page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        assert find_violations(tab.page) == [], "dark" if dark else "light"


def test_sign_in_page_and_views_of_a_new_tenant_are_accessible(sized_tab: ConsoleTab, tenant: Tenant) -> None:
    sized_tab.monitor.expect_error("GET", "/me", 401)
    expect_accessible(sized_tab)
    sized_tab.submit_key(UNKNOWN_KEY)
    expect(sized_tab.page.get_by_label("API key")).to_have_attribute("aria-invalid", "true")
    expect_accessible(sized_tab)
    sized_tab.sign_in(tenant.create_key())
    expect(sized_tab.page.get_by_role("heading", name="No events yet")).to_be_visible()
    expect(sized_tab.page.get_by_role("link", name="Send your first event")).to_be_visible()
    expect_accessible(sized_tab)
    sized_tab.go("Events")
    expect(sized_tab.table("Events")).to_contain_text("No events yet")
    expect_accessible(sized_tab)


def test_views_and_dialogs_are_accessible(sized_tab: ConsoleTab, tenant: Tenant, api: ApiClient) -> None:
    api.request("PUT", "/inboxes/crm", {"event_types": ["order.*", f"{LONG_TYPE}*"]})
    api.send({"n": 1}, "order.created")
    api.poll()
    api.send({"text": "long " * 200, "unbroken": "x" * 500, "deep": {"er": [1, 2.50, None, True]}}, LONG_TYPE)
    api.send({}, "order.leased")
    api.poll("?mode=lease&limit=1")
    api.send({})
    tenant.create_key("inbox:read", name="a name that goes on for longer than any column of the table is wide today")
    sized_tab.sign_in(tenant.create_key())
    for view in VIEWS:
        sized_tab.go(view)
        expect(sized_tab.main).to_contain_text(LOADED[view])
        expect_accessible(sized_tab)

    drawer = sized_tab.open_event(LONG_TYPE)
    expect(drawer).to_contain_text("unbroken")
    expect_accessible(sized_tab)
    drawer.get_by_role("button", name="Erase").click()
    expect_accessible(sized_tab)
    sized_tab.button("Cancel").click()
    sized_tab.page.keyboard.press("Escape")
    sized_tab.go("Inboxes")
    sized_tab.row("Inboxes", "crm").get_by_role("button", name="Peek").click()
    expect(sized_tab.dialog("Undelivered in crm")).to_contain_text("unbroken")
    expect_accessible(sized_tab)
    sized_tab.page.keyboard.press("Escape")
    sized_tab.go("Keys")
    sized_tab.button("Create key").click()
    expect(sized_tab.dialog("New key")).to_contain_text("ibx_")
    expect_accessible(sized_tab)


def test_tenants_view_is_accessible(sized_tab: ConsoleTab, admin: ApiClient, tenant: Tenant) -> None:
    sized_tab.sign_in(admin.key)
    sized_tab.go("Tenants")
    expect(sized_tab.row("Tenants", tenant.tenant_id)).to_be_visible()
    expect_accessible(sized_tab)
    sized_tab.open_row("Tenants", tenant.tenant_id)
    expect(sized_tab.dialog("Tenant")).to_contain_text("Audit log")
    expect_accessible(sized_tab)


def test_console_fits_on_a_narrow_phone(tab: ConsoleTab, tenant: Tenant, api: ApiClient) -> None:
    payload: object = "at the bottom of it"
    for _ in range(30):
        payload = {"deeper": payload}
    api.send(payload, "order.created")
    tab.page.set_viewport_size(ViewportSize(width=360, height=780))
    tab.sign_in(tenant.create_key())
    tab.go("Keys")
    # Scope names stay on one line.
    for scope in ("events:write", "inbox:read", "tenant:manage"):
        name = tab.page.get_by_role("group", name="Scopes").get_by_text(scope, exact=True)
        assert name.evaluate("name => name.offsetHeight < 2 * name.previousElementSibling.offsetHeight")
    expect_accessible(tab)
    drawer = tab.open_event("order.created")
    bottom = drawer.get_by_text("at the bottom of it")
    for _ in range(28):
        drawer.locator("details:not([open]) > summary").last.click()
    expect(bottom).to_be_visible()
    assert bottom.evaluate("text => text.getClientRects().length") <= 3
    expect_accessible(tab)
    tab.page.keyboard.press("Escape")

    # The navigation must not cover the result of sending.
    tab.go("Send")
    tab.button("Send event").click()
    notice = tab.status("Event stored").locator(".notice")
    expect(notice).to_be_in_viewport(ratio=1)
    box, navigation = notice.bounding_box(), tab.nav.bounding_box()
    assert box is not None
    assert navigation is not None
    assert box["y"] + box["height"] <= navigation["y"]
