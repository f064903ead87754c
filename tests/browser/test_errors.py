"""Errors are explained, and can be retried."""

from playwright.sync_api import expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.tenant import ApiClient, Tenant

UNREACHABLE = "Can’t reach the service"


def test_connection_error_is_shown_until_the_service_is_back(console: ConsoleTab) -> None:
    def disconnect() -> None:
        console.page.route("**/{events?*,keys}", lambda route: route.abort("connectionrefused"))

    console.monitor.allow_connection_errors = True
    disconnect()
    console.go("Events")
    expect(console.alert(UNREACHABLE)).to_be_visible()
    expect(console.table("Events")).to_contain_text("Retrying")
    console.page.unroute_all()
    expect(console.table("Events")).to_contain_text("No events yet")
    expect(console.alert(UNREACHABLE)).to_have_count(0)

    disconnect()
    console.go("Keys")
    expect(console.alert(UNREACHABLE)).to_be_visible()
    console.page.unroute_all()
    console.button("Try again").click()
    expect(console.row("API keys", "browser")).to_be_visible()
    expect(console.alert(UNREACHABLE)).to_have_count(0)


def test_error_shows_request_id(console: ConsoleTab) -> None:
    console.monitor.expect_error("POST", "/events", 409)
    console.go("Send")
    console.field("Idempotency key").fill("order-1001")
    console.button("Send event").click()
    expect(console.status("Event stored")).to_be_visible()
    console.field("Payload").fill('{"another": "event"}')
    with console.page.expect_response("**/events") as response:
        console.button("Send event").click()
    expect(console.page.get_by_role("alert")).to_contain_text(response.value.headers["x-request-id"])


def test_missing_scope_is_explained(tab: ConsoleTab, tenant: Tenant, api: ApiClient) -> None:
    api.request("PUT", "/inboxes/default", {"enabled": False})
    tab.sign_in(tenant.create_key("inbox:read"))
    tab.go("Keys")
    expect(tab.main).to_contain_text("missing the scope tenant:manage")
    expect(tab.main).to_contain_text(f"inbox keys create {tenant.tenant_id} --scope all")
    expect(tab.button("Create key")).to_have_count(0)
    tab.go("Inboxes")
    row = tab.row("Inboxes", "default")
    expect(row.get_by_role("rowheader")).to_have_text("default disabled")
    expect(row.get_by_role("button", name="Peek")).to_be_visible()
    expect(row.get_by_role("button", name="Enable")).to_have_count(0)
