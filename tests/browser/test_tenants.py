"""The Tenants view, for admins."""

from playwright.sync_api import expect

from tests.browser.console_tab import VIEWS, ConsoleTab
from tests.browser.tenant import ApiClient, Tenant


def test_tenant_is_suspended_resumed_deleted_and_restored(tab: ConsoleTab, admin: ApiClient, tenant: Tenant) -> None:
    # Unused before the suspension: worker processes cache keys.
    key = tenant.create_key()
    path = f"/admin/tenants/{tenant.tenant_id}"
    tab.sign_in(admin.key)
    expect(tab.nav.get_by_role("link")).to_have_text([*VIEWS, "Tenants"])
    tab.go("Tenants")
    expect(tab.row("Tenants", tenant.tenant_id)).to_contain_text("REGISTERED")
    tab.open_row("Tenants", tenant.tenant_id)
    drawer = tab.dialog("Tenant")
    drawer.get_by_role("button", name="Suspend").click()
    tab.confirm("Suspend")
    expect(tab.row("Tenants", tenant.tenant_id)).to_contain_text("SUSPENDED")
    assert admin.get(path)["status"] == "SUSPENDED"
    entries = drawer.get_by_role("region", name="Audit log").get_by_role("listitem")
    expect(entries.first).to_contain_text("REGISTERED → SUSPENDED")
    expect(entries).to_have_count(len(admin.get(f"{path}/audit")))
    tab.page.keyboard.press("Escape")
    tab.button("Sign out").click()

    tab.monitor.expect_error("GET", "/me", 403)
    tab.submit_key(key)
    title = ApiClient(admin.url, key).request("GET", "/me", status=403).json()["title"]
    expect(tab.alert(title)).to_be_visible()
    expect(tab.heading("Sign in")).to_be_visible()

    tab.sign_in(admin.key)
    tab.go("Tenants")
    # A click anywhere on the row opens it.
    tab.row("Tenants", tenant.tenant_id).get_by_text("SUSPENDED").click()
    drawer.get_by_role("button", name="Resume").click()
    expect(drawer).to_contain_text("SUSPENDED → REGISTERED")
    assert admin.get(path)["status"] == "REGISTERED"

    drawer.get_by_role("button", name="Delete").click()
    tab.button("Cancel").click()
    assert admin.get(path)["active"] is True
    drawer.get_by_role("button", name="Delete").click()
    tab.confirm("Delete")
    drawer.get_by_role("button", name="Restore").click()
    expect(drawer.get_by_role("button", name="Suspend")).to_be_visible()
    assert admin.get(path)["active"] is True


def test_new_tenant_gets_a_key_and_changes_status(tab: ConsoleTab, admin: ApiClient, tenant: Tenant) -> None:
    tenant_id = f"{tenant.tenant_id}-new"
    path = f"/admin/tenants/{tenant_id}"
    tab.sign_in(admin.key)
    tab.go("Tenants")
    form = tab.page.get_by_role("region", name="Create a tenant")
    form.get_by_label("Email").fill(f"{tenant_id}@example.com")
    form.get_by_label("Tenant ID").fill(tenant_id)
    form.get_by_role("button", name="Create tenant").click()
    drawer = tab.dialog("Tenant")
    expect(drawer.get_by_role("status")).to_have_text("Tenant created.")
    expect(drawer).to_contain_text("UNVALIDATED")
    drawer.get_by_role("button", name="Create key").click()
    key = tab.dialog("New key").get_by_text("ibx_").inner_text()
    assert ApiClient(admin.url, key).get("/me")["tenant_id"] == tenant_id
    tab.button("I saved the key").click()

    drawer.get_by_role("button", name="Suspend").click()
    tab.confirm("Suspend")
    drawer.get_by_role("button", name="Resume").click()
    expect(drawer).to_contain_text("SUSPENDED → UNVALIDATED")
    assert admin.get(path)["status"] == "UNVALIDATED"
    drawer.get_by_role("button", name="Validate").press("Enter")
    expect(drawer.get_by_role("button", name="Register")).to_be_visible()
    # The button is gone, so the focus moves to the details.
    expect(drawer.get_by_role("group", name="Details")).to_be_focused()
