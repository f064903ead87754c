"""The Keys view."""

from playwright.sync_api import expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.tenant import ApiClient, Tenant


def save_new_key(console: ConsoleTab) -> str:
    """Closes the dialog with the new key, and returns the key."""
    dialog = console.dialog("New key")
    expect(dialog).to_contain_text("ibx_")
    key = dialog.get_by_text("ibx_").inner_text().strip()
    # The key is shown only once, so Esc does not close the dialog.
    for _ in range(2):
        console.page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    console.button("I saved the key").click()
    expect(dialog).to_be_hidden()
    return key


def create_key(console: ConsoleTab, name: str, *scopes: str) -> str:
    form = console.page.get_by_role("region", name="Create a key")
    form.get_by_label("Name").fill(name)
    for scope in ("events:write", "events:read", "inbox:read", "tenant:manage"):
        form.get_by_label(scope).set_checked(scope in scopes)
    form.get_by_role("button", name="Create key").click()
    return save_new_key(console)


def test_key_is_created_and_rotated(console: ConsoleTab, api: ApiClient) -> None:
    console.go("Keys")
    key = create_key(console, "zapier", "inbox:read")
    assert key not in console.page.content()
    client = ApiClient(api.url, key)
    assert client.get("/me")["scopes"] == ["inbox:read"]
    client.request("POST", "/events", {"payload": {}}, status=403)
    row = console.row("API keys", "zapier")
    expect(row).to_contain_text("inbox:read")
    expect(row).to_contain_text("active")
    expect(row.get_by_role("cell", name="never").first).to_be_visible()
    own = console.row("API keys", "browser")
    expect(own).to_contain_text("this key")
    used = api.get_key("browser")["last_used_at"]
    expect(own.locator(f"time[datetime='{used}']")).to_be_visible()

    row.get_by_role("button", name="Rotate").click()
    console.confirm("Rotate")
    new = save_new_key(console)
    assert new != key
    for each in (key, new):
        ApiClient(api.url, each).get("/me")
    expect(row).to_have_count(2)


def test_key_is_revoked_only_after_confirmation(console: ConsoleTab, admin: ApiClient) -> None:
    console.go("Keys")
    # Unused before the revocation: worker processes cache keys.
    key = create_key(console, "zapier", "inbox:read")
    row = console.row("API keys", "zapier")
    row.get_by_role("button", name="Revoke").click()
    expect(console.confirmation).to_contain_text(f"Revoke zapier (ibx_…{key[-4:]})?")
    console.button("Cancel").click()
    expect(row).to_contain_text("active")
    row.get_by_role("button", name="Revoke").click()
    console.confirm("Revoke")
    expect(row).to_contain_text("revoked")
    ApiClient(admin.url, key).request("GET", "/me", status=401)

    # Revoking the key of the tab signs out.
    console.monitor.expect_error("GET", "/keys", 401)
    console.row("API keys", "browser").get_by_role("button", name="Revoke").click()
    console.confirm("Revoke")
    expect(console.heading("Sign in")).to_be_visible()
    expect(console.main).to_contain_text("revoked")


def test_rotating_the_key_of_the_tab_switches_to_the_new_one(tab: ConsoleTab, tenant: Tenant) -> None:
    tab.sign_in(tenant.create_key(name="own"))
    tab.go("Keys")
    tab.row("API keys", "own").get_by_role("button", name="Rotate").click()
    tab.confirm("Rotate")
    first = save_new_key(tab)
    assert tab.read_stored_values() == [first]
    old = tab.row("API keys", "own").filter(has_not_text="this key")
    expect(old).to_have_count(1)
    for action in ("Rotate", "Revoke"):
        old.get_by_role("button", name=action).click()
        expect(tab.confirmation).to_contain_text(f"{action} own")
        expect(tab.confirmation).not_to_contain_text("signed in with")
        tab.button("Cancel").click()

    own = tab.row("API keys", "own").filter(has_text="this key")
    own.get_by_role("button", name="Rotate").click()
    tab.page.get_by_label("Keep the old key valid for").select_option("0")
    tab.confirm("Rotate")
    second = save_new_key(tab)
    ApiClient(tab.monitor.url, first).request("GET", "/keys", status=401)
    tab.page.reload()
    tab.go("Keys")
    expect(own).to_contain_text("active")
    assert tab.read_stored_values() == [second]
