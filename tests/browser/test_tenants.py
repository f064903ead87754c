"""The registry, for whoever runs the service."""

from playwright.sync_api import expect

from tests.browser.console_tab import Visit
from tests.browser.tenant import Account, Api


def test_a_tenant_is_suspended_and_resumed_and_its_trail_says_so(visit: Visit, admin: Api, account: Account) -> None:
    # Never used before: processes remember for a while what they know of a key.
    key = account.key()
    path = f"/admin/tenants/{account.tenant_id}"
    visit.sign_in(admin.key)
    visit.go("Tenants")
    expect(visit.row("Tenants", account.tenant_id)).to_contain_text("REGISTERED")
    visit.open_row("Tenants", account.tenant_id)
    dialog = visit.dialog("Tenant")
    dialog.get_by_role("button", name="Suspend").click()
    visit.confirm("Suspend")
    expect(visit.row("Tenants", account.tenant_id)).to_contain_text("SUSPENDED")
    assert admin.call("GET", path).json()["status"] == "SUSPENDED"
    trail = dialog.get_by_role("region", name="Audit trail").get_by_role("listitem")
    expect(trail.first).to_contain_text("REGISTERED → SUSPENDED")
    expect(trail).to_have_count(len(admin.call("GET", f"{path}/audit").json()))
    visit.page.keyboard.press("Escape")
    visit.button("Sign out").click()

    visit.watch.announce("GET", "/me", 403)
    visit.try_key(key)
    expect(visit.page.get_by_role("alert")).to_contain_text("The tenant of this key is not active")
    expect(visit.heading("Sign in")).to_be_visible()

    visit.sign_in(admin.key)
    visit.go("Tenants")
    visit.open_row("Tenants", account.tenant_id)
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog).to_contain_text("SUSPENDED → REGISTERED")
    assert admin.call("GET", path).json()["status"] == "REGISTERED"


def test_a_tenant_is_deleted_and_restored(visit: Visit, admin: Api, account: Account) -> None:
    path = f"/admin/tenants/{account.tenant_id}"
    visit.sign_in(admin.key)
    visit.go("Tenants")
    # Anywhere on the row, and not on the id alone.
    visit.row("Tenants", account.tenant_id).get_by_text("REGISTERED").click()
    dialog = visit.dialog("Tenant")
    dialog.get_by_role("button", name="Delete").click()
    visit.button("Cancel").click()
    assert admin.call("GET", path).json()["active"] is True
    dialog.get_by_role("button", name="Delete").click()
    visit.confirm("Delete")
    dialog.get_by_role("button", name="Restore").click()
    expect(dialog.get_by_role("button", name="Suspend")).to_be_visible()
    assert admin.call("GET", path).json()["active"] is True


def test_a_tenant_is_made_and_gets_its_first_key(visit: Visit, admin: Api, account: Account) -> None:
    tenant_id = f"{account.tenant_id}-new"
    visit.sign_in(admin.key)
    visit.go("Tenants")
    form = visit.page.get_by_role("region", name="Create a tenant")
    form.get_by_label("E-mail").fill(f"{tenant_id}@example.com")
    form.get_by_label("Tenant id").fill(tenant_id)
    form.get_by_role("button", name="Create tenant").click()
    dialog = visit.dialog("Tenant")
    expect(dialog.get_by_role("status")).to_have_text("The tenant is there.")
    expect(dialog).to_contain_text("UNVALIDATED")
    dialog.get_by_role("button", name="Create a key for it").click()
    key = visit.dialog("New key").get_by_text("ibx_").inner_text()
    assert Api(admin.url, key).call("GET", "/me").json()["tenant_id"] == tenant_id


def test_an_unvalidated_tenant_is_suspended_and_resumed(visit: Visit, admin: Api, account: Account) -> None:
    path = f"/admin/tenants/{account.tenant_id}"
    admin.call("PUT", f"{path}/status", {"status": "UNVALIDATED", "force": True})
    visit.sign_in(admin.key)
    visit.go("Tenants")
    visit.open_row("Tenants", account.tenant_id)
    dialog = visit.dialog("Tenant")
    expect(dialog.get_by_role("button", name="Validate")).to_be_visible()
    dialog.get_by_role("button", name="Suspend").click()
    visit.confirm("Suspend")
    dialog.get_by_role("button", name="Resume").click()
    expect(dialog).to_contain_text("SUSPENDED → UNVALIDATED")
    assert admin.call("GET", path).json()["status"] == "UNVALIDATED"
