"""Nothing keeps people from using a view, in light and dark, on a desk and on a phone; none is wider than that."""

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.accessibility import barriers
from tests.browser.console_tab import VIEWS, Visit
from tests.browser.tenant import Account, Api
from tests.browser.test_sign_in import UNKNOWN

SIZES = {"desktop": ViewportSize(width=1280, height=800), "phone": ViewportSize(width=390, height=844)}
LONG = "a.very.long.type.of.event.that.somebody.has.put.together.from.many.words/and-then-some-more"


@pytest.fixture(params=SIZES, ids=str)
def sized(visit: Visit, request: pytest.FixtureRequest) -> Visit:
    visit.page.set_viewport_size(SIZES[request.param])
    return visit


# What a view shows last of all that it asks for, or else something that is always there.
LOADED = {
    "Overview": "crm",
    "Events": "order.leased",
    "Inboxes": "crm",
    "Send": "Send event",
    "Keys": "a name that goes on",
    "Connect": "Poll and lose nothing",
}


def look(visit: Visit) -> None:
    """At what is shown now, in either scheme."""
    assert visit.overflow() == 0
    for dark in (False, True):
        visit.page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        assert barriers(visit.page) == [], "dark" if dark else "light"


def furnish(account: Account) -> None:
    """Something of everything."""
    api = account.api()
    api.call("PUT", "/inboxes/crm", {"event_types": ["order.*", f"{LONG}*"]})
    api.send({"n": 1}, "order.created")
    api.poll()
    api.send({"text": "long " * 200, "unbroken": "x" * 500, "deep": {"er": [1, 2.50, None, True]}}, LONG)
    api.send({}, "order.leased")
    api.poll("?mode=lease&limit=1")
    api.send({})
    account.key("inbox:read", name="a name that goes on for longer than anybody would have thought it could")


def test_signing_in(sized: Visit) -> None:
    sized.watch.announce("GET", "/me", 401)
    look(sized)
    sized.try_key(UNKNOWN)
    expect(sized.page.get_by_label("API key")).to_have_attribute("aria-invalid", "true")
    look(sized)


def test_the_first_views_of_a_new_tenant(sized: Visit, account: Account) -> None:
    sized.sign_in(account.key())
    expect(sized.page.get_by_role("link", name="Send a first event")).to_be_visible()
    look(sized)
    sized.go("Events")
    expect(sized.table("Events")).to_contain_text("No events yet")
    look(sized)


def test_every_view(sized: Visit, account: Account) -> None:
    furnish(account)
    sized.sign_in(account.key())
    for view in VIEWS:
        sized.go(view)
        expect(sized.page.get_by_role("main")).to_contain_text(LOADED[view])
        look(sized)


def test_every_dialog(sized: Visit, account: Account) -> None:
    furnish(account)
    sized.sign_in(account.key())
    sized.go("Events")
    sized.open_row("Events", LONG)
    expect(sized.dialog("Event")).to_contain_text("unbroken")
    look(sized)
    sized.dialog("Event").get_by_role("button", name="Erase").click()
    look(sized)
    sized.button("Cancel").click()
    sized.page.keyboard.press("Escape")
    sized.go("Inboxes")
    sized.row("Inboxes", "crm").get_by_role("button", name="Peek").click()
    expect(sized.dialog("Waiting in crm")).to_contain_text("unbroken")
    look(sized)
    sized.page.keyboard.press("Escape")
    sized.go("Keys")
    sized.button("Create key").click()
    expect(sized.dialog("New key")).to_contain_text("ibx_")
    look(sized)


def test_the_tenants(sized: Visit, admin: Api, account: Account) -> None:
    sized.sign_in(admin.key)
    sized.go("Tenants")
    expect(sized.row("Tenants", account.tenant_id)).to_be_visible()
    look(sized)
    sized.open_row("Tenants", account.tenant_id)
    expect(sized.dialog("Tenant")).to_contain_text("Audit trail")
    look(sized)


def test_a_narrow_phone(visit: Visit, account: Account) -> None:
    payload: object = "at the bottom of it"
    for _ in range(30):
        payload = {"deeper": payload}
    account.api().send(payload, "order.created")
    visit.page.set_viewport_size(ViewportSize(width=360, height=780))
    visit.sign_in(account.key())
    visit.go("Keys")
    # Of two lines it would be higher than the box that is ticked, twice.
    for scope in ("events:write", "inbox:read", "tenant:manage"):
        name = visit.page.get_by_role("group", name="Scopes").get_by_text(scope, exact=True)
        assert name.evaluate("name => name.offsetHeight < 2 * name.previousElementSibling.offsetHeight")
    look(visit)
    visit.go("Events")
    visit.open_row("Events", "order.created")
    dialog = visit.dialog("Event")
    bottom = dialog.get_by_text("at the bottom of it")
    for _ in range(28):
        dialog.locator("details:not([open]) > summary").last.click()
    expect(bottom).to_be_visible()
    assert bottom.evaluate("text => text.getClientRects().length") <= 3
    look(visit)


def test_what_became_of_an_event_is_in_sight_on_a_phone(visit: Visit, account: Account) -> None:
    visit.page.set_viewport_size(SIZES["phone"])
    visit.sign_in(account.key())
    visit.go("Send")
    visit.button("Send event").click()
    said = visit.page.get_by_role("status").filter(has_text="Stored").locator(".notice")
    expect(said).to_be_in_viewport(ratio=1)
    end, bar = said.bounding_box(), visit.nav.bounding_box()
    assert end is not None
    assert bar is not None
    assert end["y"] + end["height"] <= bar["y"]
