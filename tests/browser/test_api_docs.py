"""/docs in a browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.console_tab import ConsoleTab

# Swagger UI renders all operations again on each click, which takes seconds on a busy machine.
_TIMEOUT_MS = 60_000


@pytest.mark.parametrize("operation", ["poll", "poll_named"])
def test_try_it_out_defaults_to_peek(tab: ConsoleTab, operation: str) -> None:
    tab.page.set_default_timeout(_TIMEOUT_MS)
    tab.page.goto(f"{tab.monitor.url}/docs")
    block = tab.page.locator(f"#operations-inbox-{operation}")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    mode = block.locator("tr[data-param-name=mode] select")
    expect(mode).to_be_enabled(timeout=_TIMEOUT_MS)
    expect(mode).to_have_value("peek", timeout=_TIMEOUT_MS)
