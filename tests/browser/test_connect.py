"""The snippets of the Connect view work as shown."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.tenant import ApiClient, Tenant


def read_snippet(console: ConsoleTab, title: str) -> str:
    return console.page.get_by_role("group", name=title, exact=True).inner_text()


def run(command: list[str], key: str) -> str:
    """Returns what the command prints."""
    result = subprocess.run(
        command,
        env=os.environ | {"INBOX_API_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.usefixtures("recipe_programs")
def test_curl_snippets_work(console: ConsoleTab, api: ApiClient, tmp_path: Path) -> None:
    def run_snippet(title: str) -> str:
        return run(["bash", "-euo", "pipefail", "-c", f"cd {tmp_path}; {read_snippet(console, title)}"], api.key)

    console.go("Connect")
    assert '"status":"undelivered"' in run_snippet("Send an event")
    assert '"deliveries":0' in run_snippet("Peek")
    assert '"status":"delivered"' in run_snippet("Poll")
    assert run_snippet("Peek").strip() == "[]"
    run_snippet("Send an event")
    printed = run_snippet("Poll with leases")
    assert '["order.created",{"order":1001}]' in printed
    assert '"lost":[]' in printed
    console.go("Events")
    expect(console.row("Events", "order.created")).to_have_count(2)
    expect(console.row("Events", "undelivered")).to_have_count(0)


def test_python_snippets_work(console: ConsoleTab, api: ApiClient) -> None:
    console.go("Connect")
    console.page.get_by_role("tab", name="Python").click()
    stored = run([sys.executable, "-c", read_snippet(console, "Send an event")], api.key)
    (event,) = api.poll("?mode=peek")
    assert stored == f"stored as {event['id']}\n"
    consumed = run([sys.executable, "-c", read_snippet(console, "Consume events")], api.key)
    assert consumed == "order.created {'order': 1001}\n"
    assert api.get_event(event["id"])["status"] == "delivered"


def test_key_appears_in_snippets_only_on_request(tab: ConsoleTab, tenant: Tenant) -> None:
    key = tenant.create_key()
    tab.sign_in(key)
    tab.go("Connect")
    for guide in tab.page.get_by_role("tab").all():
        guide.click()
        panel = tab.page.get_by_role("tabpanel", name=guide.inner_text())
        expect(panel.get_by_role("heading").first).to_be_visible()
        expect(panel).not_to_contain_text(key)
        tab.page.get_by_label("Show my API key").check()
        expect(panel).to_contain_text(key)
        tab.page.get_by_label("Show my API key").uncheck()
        expect(panel).not_to_contain_text(key)
