"""A key opens the console, for this tab and no longer."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.console_tab import VIEWS, Visit
from tests.browser.tenant import Account, Api

# Well-formed, and nobody's.
UNKNOWN = "ibx_0000000000000000000000000000000000000000000"


def test_a_wrong_key_is_refused_in_words(visit: Visit) -> None:
    visit.watch.announce("GET", "/me", 401)
    expect(visit.heading("Sign in")).to_be_visible()
    visit.try_key(UNKNOWN)
    expect(visit.page.get_by_label("API key")).to_have_accessible_description(re.compile("does not know this key"))
    expect(visit.heading("Sign in")).to_be_visible()
    expect(visit.nav).to_be_hidden()


def test_the_page_names_a_command_whose_key_can_do_everything(visit: Visit) -> None:
    for command in (".venv/bin/inbox keys create demo --scope all", "inbox keys create TENANT --scope all"):
        expect(visit.page.get_by_text(command, exact=True)).to_be_visible()


def test_a_key_is_kept_for_the_tab_and_nowhere_else(
    visit: Visit, account: Account, new_visit: Callable[[str], Visit]
) -> None:
    key = account.key()
    visit.sign_in(key)
    assert key in str(visit.page.evaluate("() => Object.values(sessionStorage)"))
    assert visit.page.evaluate("() => Object.values(localStorage)") == []
    assert visit.page.context.cookies() == []
    assert key not in visit.page.url
    visit.page.reload()
    expect(visit.nav).to_be_visible()
    other_tab = visit.page.context.new_page()
    other_tab.goto(visit.watch.url)
    expect(other_tab.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(new_visit(visit.watch.url).heading("Sign in")).to_be_visible()


def test_signing_out_forgets_the_key(console: Visit) -> None:
    console.button("Sign out").click()
    expect(console.heading("Sign in")).to_be_visible()
    assert console.page.evaluate("() => Object.values(sessionStorage)") == []
    console.page.reload()
    expect(console.heading("Sign in")).to_be_visible()
    expect(console.page.get_by_label("API key")).to_have_value("")


def test_every_view_is_a_link_and_a_heading_away(console: Visit) -> None:
    expect(console.nav.get_by_role("link")).to_have_text(list(VIEWS))
    for view in VIEWS:
        console.go(view)
        expect(console.nav.get_by_role("link", name=view, exact=True)).to_have_attribute("aria-current", "page")


def test_a_view_has_an_address_and_back_leads_back(console: Visit) -> None:
    console.go("Events")
    console.go("Keys")
    console.page.reload()
    expect(console.heading("Keys")).to_be_visible()
    console.page.go_back()
    expect(console.heading("Events")).to_be_visible()


def test_only_who_runs_the_service_sees_the_tenants(visit: Visit, admin: Api) -> None:
    visit.sign_in(admin.key)
    expect(visit.nav.get_by_role("link")).to_have_text([*VIEWS, "Tenants"])
    visit.go("Tenants")
