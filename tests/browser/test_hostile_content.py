"""Whatever others wrote into payloads and names is shown as the text that it is."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.console_tab import Visit
from tests.browser.tenant import Account, Api, new_account

HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    "<svg onload='window.pwned = 1'></svg>",
    "<iframe srcdoc='<script>parent.pwned = 1</script>'></iframe>",
    "javascript:window.pwned = 1",
    "\"><b id='injected'>bold</b>",
    "\u202egnp.exe",
    "{{constructor.constructor('window.pwned = 1')()}}",
    "${window.pwned = 1}",
    "x" * 3000,
)
# The service takes no other direction of writing in a name, and nothing that long.
NAMES = [text for text in HOSTILE if len(text) <= 200 and "\u202e" not in text]
_INJECTED = "script:not([src]), img, iframe, b#injected, svg[onload], [onerror], a[href^='javascript:']"


def expect_harmless(visit: Visit) -> None:
    expect(visit.page.locator(_INJECTED)).to_have_count(0)
    assert visit.page.evaluate("() => [typeof window.pwned, typeof {}.polluted]") == ["undefined", "undefined"]


def test_a_payload_is_text(console: Visit, account: Account) -> None:
    payload = {
        **{f"{number} {text}": text for number, text in enumerate(HOSTILE)},
        "__proto__": {"polluted": "yes"},
        "constructor": {"prototype": {"polluted": "yes"}},
        "toString": "not a function",
        "list": [*HOSTILE, {"deep": [HOSTILE]}],
    }
    account.api().send(payload, "hostile.payload")
    console.go("Events")
    console.open_row("Events", "hostile.payload")
    dialog = console.dialog("Event")
    for shown in (*HOSTILE[:3], *HOSTILE[7:9], "__proto__", "polluted"):
        # What turns the direction round is shown as an escape.
        expect(dialog).to_contain_text(json.dumps(shown)[1:-1])
    expect_harmless(console)
    assert console.overflow() == 0


def run_copied_line(console: Visit, account: Account, folder: Path) -> None:
    """Of the one event, in a shell."""
    console.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    console.go("Events")
    console.open_row("Events", "hostile.payload")
    console.button("Copy as curl").click()
    expect(console.page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    line = console.page.evaluate("() => navigator.clipboard.readText()")
    variables = os.environ | {"INBOX_API_KEY": account.key()}
    subprocess.run(
        ["bash"], input=line, cwd=folder, env=variables, capture_output=True, text=True, timeout=30, check=True
    )


@pytest.mark.usefixtures("recipe_programs")
def test_a_payload_that_is_copied_as_a_line_does_nothing_but_send_it_again(
    console: Visit, account: Account, tmp_path: Path
) -> None:
    payload = {
        text: [text, "'; touch pwned; '", "$(touch pwned)", "`touch pwned`", "\\' \n!!"] for text in HOSTILE[:10]
    }
    api = account.api()
    api.send(payload, "hostile.payload")
    api.poll()
    run_copied_line(console, account, tmp_path)
    assert list(tmp_path.iterdir()) == []
    (again,) = api.poll()
    assert (again["event_type"], again["payload"]) == ("hostile.payload", payload)


@pytest.mark.usefixtures("recipe_programs")
def test_a_payload_of_long_characters_fits_into_the_line_that_is_copied(
    console: Visit, account: Account, tmp_path: Path
) -> None:
    """A program takes so many bytes, and these are three each."""
    api = account.api()
    api.send_text(f'{{"event_type": "hostile.payload", "payload": {{"text": "{"漢" * 60_000}"}}}}')
    api.poll()
    run_copied_line(console, account, tmp_path)
    (again,) = api.poll()
    assert again["payload"] == {"text": "漢" * 60_000}


def test_a_payload_that_is_typed_is_sent_as_it_is(console: Visit, account: Account) -> None:
    text = json.dumps({"__proto__": {"polluted": "yes"}, "html": HOSTILE[0]})
    console.go("Send")
    console.field("Type").fill("typed")
    console.field("Payload").fill(text)
    console.button("Send event").click()
    expect(console.page.get_by_role("status").filter(has_text="Stored")).to_be_visible()
    (event,) = account.api().poll()
    assert event["payload"] == json.loads(text)
    expect_harmless(console)


def test_names_are_text(visit: Visit, admin: Api) -> None:
    """Of keys, tenants and those who are signed in."""
    account = new_account(admin, NAMES[0])
    for name in NAMES:
        account.key("inbox:read", name=name)
    visit.sign_in(account.key())
    expect(visit.page.get_by_text(NAMES[0])).to_be_visible()
    visit.go("Keys")
    for name in NAMES:
        expect(visit.row("API keys", name).first).to_be_visible()
    expect_harmless(visit)
    visit.button("Sign out").click()

    others = [account, *(new_account(admin, name) for name in NAMES[1:])]
    visit.sign_in(admin.key)
    visit.go("Tenants")
    for name, other in zip(NAMES, others, strict=True):
        expect(visit.row("Tenants", other.tenant_id)).to_contain_text(name)
    visit.open_row("Tenants", account.tenant_id)
    expect(visit.dialog("Tenant")).to_contain_text(NAMES[0])
    expect_harmless(visit)
