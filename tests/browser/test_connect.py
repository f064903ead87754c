"""What the view Connect shows works as it stands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.console_tab import Visit
from tests.browser.tenant import Account


def shown(console: Visit, title: str) -> str:
    """What stands under this title, to be pasted."""
    return console.page.get_by_role("group", name=title, exact=True).inner_text()


def run(command: list[str], key: str) -> str:
    """What it prints, with the key where the page says that it has to be."""
    ran = subprocess.run(
        command,
        env=os.environ | {"INBOX_API_KEY": key},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.usefixtures("recipe_programs")
def test_the_lines_for_a_shell(console: Visit, account: Account, tmp_path: Path) -> None:
    key = account.key()

    def bash(title: str) -> str:
        return run(["bash", "-euo", "pipefail", "-c", f"cd {tmp_path}; {shown(console, title)}"], key)

    console.go("Connect")
    assert '"status":"undelivered"' in bash("Send an event")
    assert '"deliveries":0' in bash("Look at what waits")
    assert '"status":"delivered"' in bash("Poll")
    assert bash("Look at what waits").strip() == "[]"
    bash("Send an event")
    printed = bash("Poll and lose nothing")
    assert '["order.created",{"order":1001}]' in printed
    assert '"lost":[]' in printed
    console.go("Events")
    expect(console.row("Events", "order.created")).to_have_count(2)
    expect(console.row("Events", "undelivered")).to_have_count(0)


def test_the_lines_for_python(console: Visit, account: Account) -> None:
    key = account.key()
    console.go("Connect")
    console.page.get_by_role("tab", name="Python").click()
    stored = run([sys.executable, "-c", shown(console, "Send")], key)
    (event,) = account.api().poll("?mode=peek")
    assert stored == f"stored as {event['id']}\n"
    assert run([sys.executable, "-c", shown(console, "Consume")], key) == "order.created {'order': 1001}\n"
    assert account.api().event(event["id"])["status"] == "delivered"


def test_the_key_is_in_the_lines_only_where_one_wants_it(visit: Visit, account: Account) -> None:
    key = account.key()
    visit.sign_in(key)
    visit.go("Connect")
    for guide in visit.page.get_by_role("tab").all():
        guide.click()
        panel = visit.page.get_by_role("tabpanel", name=guide.inner_text())
        expect(panel.get_by_role("heading").first).to_be_visible()
        expect(panel).not_to_contain_text(key)
        visit.page.get_by_label("Show my key in these lines").check()
        expect(panel).to_contain_text(key)
        visit.page.get_by_label("Show my key in these lines").uncheck()
        expect(panel).not_to_contain_text(key)
