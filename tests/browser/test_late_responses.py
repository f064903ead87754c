"""Answers that come late, or not at all: nothing is lost, and nothing old is shown in the place of something newer."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Request, expect

from tests.browser.accessibility import barriers
from tests.browser.console_tab import Visit
from tests.browser.responses import REQUEST_ID, held, refused
from tests.browser.tenant import Account, Api


@contextmanager
def asked(visit: Visit, part: str) -> Iterator[None]:
    """For what has this in its address."""
    with visit.page.expect_request(lambda request: part in request.url):
        yield


@contextmanager
def let_go(visit: Visit, part: str) -> Iterator[None]:
    """The page no longer waits for it."""
    with visit.page.expect_event("requestfailed", lambda request: part in request.url):
        yield


@pytest.mark.parametrize("status", [429, 503])
def test_a_reload_while_the_service_cannot_answer_keeps_the_key(visit: Visit, account: Account, status: int) -> None:
    key = account.key()
    visit.sign_in(key)
    visit.go("Keys")
    with refused(visit, "GET", "/me", status):
        visit.page.reload()
        expect(visit.page.get_by_role("alert")).to_contain_text(REQUEST_ID)
        assert barriers(visit.page) == []
        visit.button("Try again").press("Enter")
        expect(visit.button("Try again")).to_be_focused()
        assert visit.page.evaluate("() => Object.values(sessionStorage)") == [key]
    visit.button("Try again").press("Enter")
    expect(visit.row("API keys", "this key")).to_be_visible()
    expect(visit.page.get_by_role("main")).to_be_focused()


def test_a_reload_while_the_network_is_down_keeps_the_key(console: Visit) -> None:
    console.watch.service_may_be_away = True
    console.page.route("**/me", lambda route: route.abort("connectionrefused"))
    console.page.reload()
    expect(console.page.get_by_role("alert")).to_contain_text("The service cannot be reached")
    console.page.unroute("**/me")
    console.button("Try again").click()
    expect(console.nav).to_be_visible()


@pytest.mark.parametrize("status", [401, 403])
def test_a_reload_with_a_key_that_is_refused_forgets_it(console: Visit, status: int) -> None:
    with refused(console, "GET", "/me", status):
        console.page.reload()
        expect(console.heading("Sign in")).to_be_visible()
    assert console.page.evaluate("() => Object.values(sessionStorage)") == []


def test_what_is_under_way_cannot_be_called_off(console: Visit, account: Account) -> None:
    key_id = account.api().key_named("another program")["key_id"]
    console.go("Keys")
    console.row("API keys", "another program").get_by_role("button", name="Rotate").click()
    asking = console.page.get_by_role("dialog").filter(has=console.button("Cancel"))
    with held(console, "POST", f"/keys/{key_id}/rotate"):
        console.button("Rotate key").click()
        expect(console.button("Cancel")).to_be_disabled()
        for _ in range(2):
            console.page.keyboard.press("Escape")
        console.page.go_back()
        console.page.wait_for_url("**/#/keys")
        expect(asking).to_be_visible()
    expect(console.dialog("New key")).to_contain_text("ibx_")
    expect(asking).to_be_hidden()


def test_what_was_refused_can_be_called_off(console: Visit, account: Account) -> None:
    key_id = account.api().key_named("another program")["key_id"]
    console.go("Keys")
    console.row("API keys", "another program").get_by_role("button", name="Rotate").click()
    asking = console.page.get_by_role("dialog").filter(has=console.button("Cancel"))
    with refused(console, "POST", f"/keys/{key_id}/rotate", 503):
        console.button("Rotate key").click()
        expect(asking.get_by_role("alert")).to_contain_text(REQUEST_ID)
    console.page.keyboard.press("Escape")
    expect(asking).to_be_hidden()


def test_the_way_back_does_not_lose_a_key_that_is_shown_once(console: Visit) -> None:
    console.go("Connect")
    console.go("Keys")
    console.button("Create key").click()
    expect(console.dialog("New key")).to_contain_text("ibx_")
    console.page.go_back()
    console.page.wait_for_url("**/#/keys")
    expect(console.dialog("New key")).to_contain_text("ibx_")
    console.button("I have saved it").click()
    expect(console.heading("Keys")).to_be_visible()
    console.page.go_back()
    expect(console.heading("Connect")).to_be_visible()


def test_a_second_click_makes_no_second_key(visit: Visit, admin: Api, account: Account) -> None:
    visit.sign_in(admin.key)
    visit.go("Tenants")
    visit.open_row("Tenants", account.tenant_id)
    made: list[Request] = []
    visit.page.on("request", lambda request: made.append(request) if request.method == "POST" else None)
    with held(visit, "POST", f"/admin/tenants/{account.tenant_id}/keys"):
        visit.button("Create a key for it").dblclick()
        expect(visit.button("Create a key for it")).to_be_disabled()
    expect(visit.dialog("New key")).to_contain_text("ibx_")
    assert len(made) == 1


def test_only_the_last_choice_of_tenants_counts(visit: Visit, admin: Api, account: Account) -> None:
    visit.sign_in(admin.key)
    visit.go("Tenants")
    expect(visit.row("Tenants", account.tenant_id)).to_be_visible()
    with held(visit, "GET", "/admin/tenants", "status="):
        with asked(visit, "status=SUSPENDED"):
            visit.field("Status").select_option("SUSPENDED")
        with let_go(visit, "status=SUSPENDED"):
            visit.field("Status").select_option("REGISTERED")
        expect(visit.button("Try again")).to_have_count(0)
    expect(visit.row("Tenants", account.tenant_id)).to_be_visible()


def test_an_inbox_that_was_made_is_shown_though_an_older_list_is_under_way(console: Visit) -> None:
    with held(console, "GET", "/inboxes"):
        with asked(console, "/inboxes"):
            console.go("Inboxes")
        console.page.get_by_label("Name").fill("crm")
        with let_go(console, "/inboxes"):
            console.button("Create inbox").click()
    expect(console.row("Inboxes", "crm")).to_be_visible()


def test_only_the_last_window_counts(console: Visit) -> None:
    console.go("Overview")
    with held(console, "GET", "/stats", "window=7d"):
        with asked(console, "window=7d"):
            console.page.get_by_label("7 days").check()
        with let_go(console, "window=7d"):
            console.page.get_by_label("30 days").check()
    expect(console.page.get_by_role("main")).to_contain_text("in 30 days")


@pytest.mark.parametrize(("view", "table"), [("Inboxes", "Inboxes"), ("Overview", "By inbox")])
def test_inboxes_are_listed_before_their_figures_are_known(
    console: Visit, account: Account, view: str, table: str
) -> None:
    api = account.api()
    api.call("PUT", "/inboxes/crm", {})
    api.send({}, "order.created")
    console.go("Connect")
    with held(console, "GET", "/stats", "inbox=crm"):
        console.go(view)
        expect(console.row(table, "crm")).to_contain_text("–")
        expect(console.row(table, "default").get_by_role("cell", name="1", exact=True).first).to_be_visible()
    expect(console.row(table, "crm").get_by_role("cell", name="1", exact=True).first).to_be_visible()


@pytest.mark.parametrize(
    ("view", "table", "limited"), [("Inboxes", "Inboxes", "inbox="), ("Overview", "By inbox", "inbox=crm")]
)
def test_a_rate_limit_hides_no_inbox(console: Visit, account: Account, view: str, table: str, limited: str) -> None:
    account.api().call("PUT", "/inboxes/crm", {})
    console.go("Connect")
    with refused(console, "GET", "/stats", 429, limited):
        console.go(view)
        expect(console.page.get_by_role("alert").filter(has_text=REQUEST_ID)).to_be_visible()
        expect(console.row(table, "crm")).to_contain_text("–")


def test_a_workflow_that_cannot_be_had_is_said_and_tried_again(console: Visit) -> None:
    console.go("Connect")
    with refused(console, "GET", "/console/n8n.json", 503):
        console.page.get_by_role("tab", name="n8n").click()
        expect(console.page.get_by_role("alert")).to_contain_text("Refused with 503")
    console.button("Try again").click()
    expect(console.page.get_by_role("group", name="Workflow")).to_contain_text(console.watch.url)
    expect(console.page.get_by_role("alert").filter(has_text="Refused")).to_have_count(0)


def test_a_key_that_is_no_longer_wanted_in_the_lines_does_not_come_late(visit: Visit, account: Account) -> None:
    key = account.key()
    visit.sign_in(key)
    visit.go("Connect")
    visit.page.get_by_role("tab", name="n8n").click()
    panel = visit.page.get_by_role("tabpanel")
    expect(panel).to_contain_text("Bearer token")
    with held(visit, "GET", "/console/n8n.json"):
        with asked(visit, "/n8n.json"):
            visit.page.get_by_label("Show my key").check()
        with let_go(visit, "n8n.json"):
            visit.page.get_by_label("Show my key").uncheck()
    expect(panel).to_contain_text("Bearer token")
    expect(panel).not_to_contain_text(key)
    visit.page.get_by_label("Show my key").check()
    expect(panel).to_contain_text(key)
    with held(visit, "GET", "/console/n8n.json"):
        visit.page.get_by_label("Show my key").uncheck()
        expect(panel).not_to_contain_text(key)
