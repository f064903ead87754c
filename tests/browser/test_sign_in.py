"""Signing in and out, and navigation between views."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.console_tab import VIEWS, ConsoleTab
from tests.browser.tenant import Tenant

# Well-formed but unknown.
UNKNOWN_KEY = "ibx_0000000000000000000000000000000000000000000"


def test_unknown_key_is_rejected_and_page_explains_how_to_create_one(tab: ConsoleTab) -> None:
    tab.monitor.expect_error("GET", "/me", 401)
    expect(tab.heading("Sign in")).to_be_visible()
    for command in (".venv/bin/inbox keys create demo --scope all", "inbox keys create TENANT --scope all"):
        expect(tab.page.get_by_text(command, exact=True)).to_be_visible()
    tab.submit_key(UNKNOWN_KEY)
    expect(tab.page.get_by_label("API key")).to_have_accessible_description(re.compile("Invalid API key"))
    expect(tab.heading("Sign in")).to_be_visible()
    expect(tab.nav).to_be_hidden()


def test_key_is_kept_in_this_tab_only_until_sign_out(
    tab: ConsoleTab, tenant: Tenant, new_tab: Callable[[str], ConsoleTab]
) -> None:
    key = tenant.create_key()
    tab.sign_in(key)
    assert tab.read_stored_values() == [key]
    assert tab.page.evaluate("() => Object.values(localStorage)") == []
    assert tab.page.context.cookies() == []
    assert key not in tab.page.url
    tab.page.reload()
    expect(tab.nav).to_be_visible()
    same_browser = tab.page.context.new_page()
    same_browser.goto(tab.monitor.url)
    expect(same_browser.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(new_tab(tab.monitor.url).heading("Sign in")).to_be_visible()

    tab.button("Sign out").click()
    expect(tab.heading("Sign in")).to_be_visible()
    assert tab.read_stored_values() == []
    tab.page.reload()
    expect(tab.heading("Sign in")).to_be_visible()
    expect(tab.page.get_by_label("API key")).to_have_value("")


def test_each_view_has_a_link_and_a_url(console: ConsoleTab) -> None:
    expect(console.nav.get_by_role("link")).to_have_text(list(VIEWS))
    for view in VIEWS:
        console.go(view)
        expect(console.nav.get_by_role("link", name=view, exact=True)).to_have_attribute("aria-current", "page")
    last, previous = VIEWS[-1], VIEWS[-2]
    console.page.reload()
    expect(console.heading(last)).to_be_visible()
    console.page.go_back()
    expect(console.heading(previous)).to_be_visible()
