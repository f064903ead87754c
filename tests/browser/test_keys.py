"""Keys: made, shown once, rotated and revoked from the console."""

from playwright.sync_api import expect

from tests.browser.console_tab import Visit
from tests.browser.tenant import Account, Api


def shown(console: Visit) -> str:
    """The key in the dialog, which is closed then."""
    dialog = console.dialog("New key")
    expect(dialog).to_contain_text("ibx_")
    key = dialog.get_by_text("ibx_").inner_text().strip()
    # Nobody can show it again, so that it does not go by mistake.
    for _ in range(2):
        console.page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    console.button("I have saved it").click()
    expect(dialog).to_be_hidden()
    return key


def create(console: Visit, name: str, *scopes: str) -> str:
    form = console.page.get_by_role("region", name="Create a key")
    form.get_by_label("Name").fill(name)
    for scope in ("events:write", "events:read", "inbox:read", "tenant:manage"):
        form.get_by_label(scope).set_checked(scope in scopes)
    form.get_by_role("button", name="Create key").click()
    return shown(console)


def test_a_key_is_shown_once_and_works(console: Visit, account: Account) -> None:
    console.go("Keys")
    key = create(console, "zapier", "inbox:read")
    assert key not in console.page.content()
    api = Api(account.admin.url, key)
    assert api.call("GET", "/me").json()["scopes"] == ["inbox:read"]
    api.call("POST", "/events", {"payload": {}}, status=403)
    row = console.row("API keys", "zapier")
    expect(row).to_contain_text("inbox:read")
    expect(row).to_contain_text("active")
    expect(row.get_by_role("cell", name="never").first).to_be_visible()
    own = console.row("API keys", "browser")
    expect(own).to_contain_text("this key")
    used = account.api().key_named("browser")["last_used_at"]
    expect(own.locator(f"time[datetime='{used}']")).to_be_visible()


def test_a_key_is_rotated(console: Visit, account: Account) -> None:
    console.go("Keys")
    old = create(console, "zapier", "inbox:read")
    console.row("API keys", "zapier").get_by_role("button", name="Rotate").click()
    console.confirm("Rotate")
    new = shown(console)
    assert new != old
    for key in (old, new):
        Api(account.admin.url, key).call("GET", "/me")
    expect(console.row("API keys", "zapier")).to_have_count(2)


def test_a_key_is_revoked_after_a_second_word(console: Visit, account: Account) -> None:
    console.go("Keys")
    # It is not used before: processes remember for a while what they know of a key.
    key = create(console, "zapier", "inbox:read")
    row = console.row("API keys", "zapier")
    row.get_by_role("button", name="Revoke").click()
    expect(console.page.get_by_role("dialog")).to_contain_text(f"Revoke zapier (ibx_…{key[-4:]})?")
    console.button("Cancel").click()
    expect(row).to_contain_text("active")
    row.get_by_role("button", name="Revoke").click()
    console.confirm("Revoke")
    expect(row).to_contain_text("revoked")
    Api(account.admin.url, key).call("GET", "/me", status=401)


def test_whoever_rotates_the_key_of_the_tab_goes_on_with_the_new_one(visit: Visit, account: Account) -> None:
    old = account.key(name="own")
    visit.sign_in(old)
    visit.go("Keys")
    visit.row("API keys", "own").get_by_role("button", name="Rotate").click()
    visit.page.get_by_label("The old key works for").select_option("0")
    visit.confirm("Rotate")
    new = shown(visit)
    Api(account.admin.url, old).call("GET", "/keys", status=401)
    visit.page.reload()
    visit.go("Keys")
    expect(visit.row("API keys", "own").filter(has_text="active")).to_contain_text("this key")
    assert new in str(visit.page.evaluate("() => Object.values(sessionStorage)"))


def test_whoever_revokes_the_key_of_the_tab_is_told_to_sign_in_again(visit: Visit, account: Account) -> None:
    visit.watch.announce("GET", "/keys", 401)
    visit.sign_in(account.key(name="own"))
    visit.go("Keys")
    visit.row("API keys", "own").get_by_role("button", name="Revoke").click()
    visit.confirm("Revoke")
    expect(visit.heading("Sign in")).to_be_visible()
    expect(visit.page.get_by_role("main")).to_contain_text("revoked")


def test_the_old_key_is_not_taken_for_the_one_of_the_tab(visit: Visit, account: Account) -> None:
    visit.sign_in(account.key(name="own"))
    visit.go("Keys")
    visit.row("API keys", "own").get_by_role("button", name="Rotate").click()
    visit.confirm("Rotate")
    shown(visit)
    old = visit.row("API keys", "own").filter(has_not_text="this key")
    expect(old).to_have_count(1)
    for act in ("Rotate", "Revoke"):
        old.get_by_role("button", name=act).click()
        asking = visit.page.get_by_role("dialog").filter(has=visit.button("Cancel"))
        expect(asking).to_contain_text(f"{act} own")
        expect(asking).not_to_contain_text("signed in with")
        visit.button("Cancel").click()
