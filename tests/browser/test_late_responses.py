"""Late and failed responses: nothing is lost, and older data never overwrites newer data."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Request, expect

from tests.browser.accessibility import find_violations
from tests.browser.console_tab import ConsoleTab
from tests.browser.responses import REQUEST_ID, delayed, failing
from tests.browser.tenant import ApiClient, Tenant


@contextmanager
def expect_request(tab: ConsoleTab, url_part: str) -> Iterator[None]:
    with tab.page.expect_request(lambda request: url_part in request.url):
        yield


@contextmanager
def expect_cancelled(tab: ConsoleTab, url_part: str) -> Iterator[None]:
    with tab.page.expect_event("requestfailed", lambda request: url_part in request.url):
        yield


@pytest.mark.parametrize("status", [429, 503])
def test_reload_during_an_outage_keeps_the_key(tab: ConsoleTab, tenant: Tenant, status: int) -> None:
    key = tenant.create_key()
    tab.sign_in(key)
    tab.go("Keys")
    with failing(tab, "GET", "/me", status):
        tab.page.reload()
        expect(tab.alert(REQUEST_ID)).to_be_visible()
        assert find_violations(tab.page) == []
        tab.button("Try again").press("Enter")
        expect(tab.button("Try again")).to_be_focused()
        assert tab.read_stored_values() == [key]
    tab.button("Try again").press("Enter")
    expect(tab.row("API keys", "this key")).to_be_visible()
    expect(tab.main).to_be_focused()


@pytest.mark.parametrize("status", [401, 403])
def test_reload_with_a_rejected_key_signs_out(console: ConsoleTab, status: int) -> None:
    with failing(console, "GET", "/me", status):
        console.page.reload()
        expect(console.heading("Sign in")).to_be_visible()
    assert console.read_stored_values() == []


def test_back_and_esc_do_not_close_a_dialog_with_a_new_key(console: ConsoleTab, api: ApiClient) -> None:
    rotation = f"/keys/{api.get_key('another program')['key_id']}/rotate"
    console.go("Connect")
    console.go("Keys")
    rotate = console.row("API keys", "another program").get_by_role("button", name="Rotate")
    rotate.click()
    with failing(console, "POST", rotation, 503):
        console.button("Rotate key").click()
        expect(console.confirmation.get_by_role("alert")).to_contain_text(REQUEST_ID)
    console.page.keyboard.press("Escape")
    expect(console.confirmation).to_be_hidden()

    rotate.click()
    with delayed(console, "POST", rotation):
        console.button("Rotate key").click()
        expect(console.button("Cancel")).to_be_disabled()
        for _ in range(2):
            console.page.keyboard.press("Escape")
        console.page.go_back()
        console.page.wait_for_url("**/#/keys")
        expect(console.confirmation).to_be_visible()
    expect(console.dialog("New key")).to_contain_text("ibx_")
    expect(console.confirmation).to_be_hidden()
    console.page.go_back()
    console.page.wait_for_url("**/#/keys")
    expect(console.dialog("New key")).to_contain_text("ibx_")
    console.button("I saved the key").click()
    expect(console.heading("Keys")).to_be_visible()
    console.page.go_back()
    expect(console.heading("Connect")).to_be_visible()


def test_double_click_creates_one_key(tab: ConsoleTab, admin: ApiClient, tenant: Tenant) -> None:
    tab.sign_in(admin.key)
    tab.go("Tenants")
    tab.open_row("Tenants", tenant.tenant_id)
    posts: list[Request] = []
    tab.page.on("request", lambda request: posts.append(request) if request.method == "POST" else None)
    with delayed(tab, "POST", f"/admin/tenants/{tenant.tenant_id}/keys"):
        tab.button("Create key").dblclick()
        expect(tab.button("Create key")).to_be_disabled()
    expect(tab.dialog("New key")).to_contain_text("ibx_")
    assert len(posts) == 1


def test_latest_tenant_filter_wins(tab: ConsoleTab, admin: ApiClient, tenant: Tenant) -> None:
    tab.sign_in(admin.key)
    tab.go("Tenants")
    expect(tab.row("Tenants", tenant.tenant_id)).to_be_visible()
    with delayed(tab, "GET", "/admin/tenants", "status="):
        with expect_request(tab, "status=SUSPENDED"):
            tab.field("Status").select_option("SUSPENDED")
        with expect_cancelled(tab, "status=SUSPENDED"):
            tab.field("Status").select_option("REGISTERED")
        expect(tab.button("Try again")).to_have_count(0)
    expect(tab.row("Tenants", tenant.tenant_id)).to_be_visible()


def test_latest_inbox_list_and_time_range_win(console: ConsoleTab) -> None:
    with delayed(console, "GET", "/inboxes"):
        with expect_request(console, "/inboxes"):
            console.go("Inboxes")
        console.page.get_by_label("Name").fill("crm")
        with expect_cancelled(console, "/inboxes"):
            console.button("Create inbox").click()
    expect(console.row("Inboxes", "crm")).to_be_visible()

    console.go("Overview")
    with delayed(console, "GET", "/stats", "window=7d"):
        with expect_request(console, "window=7d"):
            console.page.get_by_label("7 days").check()
        with expect_cancelled(console, "window=7d"):
            console.page.get_by_label("30 days").check()
    expect(console.main).to_contain_text("in the last 30 days")


@pytest.mark.parametrize(
    ("view", "table", "failing_query"), [("Inboxes", "Inboxes", "inbox="), ("Overview", "By inbox", "inbox=crm")]
)
def test_inboxes_are_listed_before_their_statistics(
    console: ConsoleTab, api: ApiClient, view: str, table: str, failing_query: str
) -> None:
    api.request("PUT", "/inboxes/crm", {})
    api.send({}, "order.created")
    crm = console.row(table, "crm")
    console.go("Connect")
    with delayed(console, "GET", "/stats", "inbox=crm"):
        console.go(view)
        expect(crm).to_contain_text("–")
        expect(console.row(table, "default").get_by_role("cell", name="1", exact=True).first).to_be_visible()
    expect(crm.get_by_role("cell", name="1", exact=True).first).to_be_visible()
    console.go("Connect")
    with failing(console, "GET", "/stats", 429, failing_query):
        console.go(view)
        expect(console.alert(REQUEST_ID)).to_be_visible()
        expect(crm).to_contain_text("–")


def test_workflow_download_can_be_retried_and_never_shows_a_hidden_key(tab: ConsoleTab, tenant: Tenant) -> None:
    key = tenant.create_key()
    tab.sign_in(key)
    tab.go("Connect")
    with failing(tab, "GET", "/console/n8n.json", 503):
        tab.page.get_by_role("tab", name="n8n").click()
        expect(tab.alert(REQUEST_ID)).to_be_visible()
    tab.button("Try again").click()
    expect(tab.page.get_by_role("group", name="Workflow")).to_contain_text(tab.monitor.url)
    expect(tab.alert(REQUEST_ID)).to_have_count(0)

    panel = tab.page.get_by_role("tabpanel")
    show_key = tab.page.get_by_label("Show my API key")
    with delayed(tab, "GET", "/console/n8n.json"):
        with expect_request(tab, "/n8n.json"):
            show_key.check()
        with expect_cancelled(tab, "n8n.json"):
            show_key.uncheck()
    expect(panel).to_contain_text("Bearer token")
    expect(panel).not_to_contain_text(key)
    show_key.check()
    expect(panel).to_contain_text(key)
    with delayed(tab, "GET", "/console/n8n.json"):
        show_key.uncheck()
        expect(panel).not_to_contain_text(key)
