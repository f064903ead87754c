"""Payloads and names are shown as text, never as markup."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.tenant import ApiClient, create_tenant

HOSTILE_TEXTS = (
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
# The API rejects names that are longer or contain direction overrides.
HOSTILE_NAMES = [text for text in HOSTILE_TEXTS if len(text) <= 200 and "\u202e" not in text]
SHELL_INJECTIONS = ["'; touch pwned; '", "$(touch pwned)", "`touch pwned`", "\\' \n!!"]
_INJECTED_ELEMENTS = "script:not([src]), img, iframe, b#injected, svg[onload], [onerror], a[href^='javascript:']"


def expect_harmless(tab: ConsoleTab) -> None:
    expect(tab.page.locator(_INJECTED_ELEMENTS)).to_have_count(0)
    assert tab.page.evaluate("() => [typeof window.pwned, typeof {}.polluted]") == ["undefined", "undefined"]


def test_payload_is_shown_as_text(console: ConsoleTab, api: ApiClient) -> None:
    payload = {
        **{f"{number} {text}": text for number, text in enumerate(HOSTILE_TEXTS)},
        "__proto__": {"polluted": "yes"},
        "constructor": {"prototype": {"polluted": "yes"}},
        "toString": "not a function",
        "list": [*HOSTILE_TEXTS, {"deep": [HOSTILE_TEXTS]}],
    }
    console.go("Send")
    console.field("Type").fill("hostile.payload")
    console.field("Payload").fill(json.dumps(payload, ensure_ascii=False))
    console.button("Send event").click()
    expect(console.status("Event stored")).to_be_visible()
    expect_harmless(console)
    (event,) = api.poll()
    assert event["payload"] == json.loads(json.dumps(payload))

    drawer = console.open_event("hostile.payload")
    for text in (*HOSTILE_TEXTS[:3], *HOSTILE_TEXTS[7:9], "__proto__", "polluted"):
        # Direction overrides are escaped.
        expect(drawer).to_contain_text(json.dumps(text)[1:-1])
    expect_harmless(console)
    assert console.measure_overflow_px() == 0


@pytest.mark.usefixtures("recipe_programs")
@pytest.mark.parametrize(
    "payload",
    [
        pytest.param({text: [text, *SHELL_INJECTIONS] for text in HOSTILE_TEXTS[:10]}, id="hostile"),
        # An argument is limited in bytes, and each of these characters takes three.
        pytest.param({"text": "漢" * 60_000}, id="long"),
    ],
)
def test_copied_curl_command_only_sends_the_event_again(
    console: ConsoleTab, api: ApiClient, tmp_path: Path, payload: object
) -> None:
    api.send(payload, "hostile.payload")
    api.poll()
    console.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    console.open_event("hostile.payload")
    console.button("Copy as curl").click()
    expect(console.status("Copied")).to_be_visible()
    command = console.page.evaluate("() => navigator.clipboard.readText()")
    variables = os.environ | {"INBOX_API_KEY": api.key}
    subprocess.run(
        ["bash"], input=command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=30, check=True
    )
    assert list(tmp_path.iterdir()) == []
    (event,) = api.poll()
    assert (event["event_type"], event["payload"]) == ("hostile.payload", payload)


def test_names_are_shown_as_text(tab: ConsoleTab, admin: ApiClient) -> None:
    tenant = create_tenant(admin, HOSTILE_NAMES[0])
    for name in HOSTILE_NAMES:
        tenant.create_key("inbox:read", name=name)
    tab.sign_in(tenant.create_key())
    expect(tab.page.get_by_text(HOSTILE_NAMES[0])).to_be_visible()
    tab.go("Keys")
    for name in HOSTILE_NAMES:
        expect(tab.row("API keys", name).first).to_be_visible()
    expect_harmless(tab)
    tab.button("Sign out").click()

    tenants = [tenant, *(create_tenant(admin, name) for name in HOSTILE_NAMES[1:])]
    tab.sign_in(admin.key)
    tab.go("Tenants")
    for name, other in zip(HOSTILE_NAMES, tenants, strict=True):
        expect(tab.row("Tenants", other.tenant_id)).to_contain_text(name)
    tab.open_row("Tenants", tenant.tenant_id)
    expect(tab.dialog("Tenant")).to_contain_text(HOSTILE_NAMES[0])
    expect_harmless(tab)
