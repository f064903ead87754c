"""/docs in a browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.console_tab import Visit

# Swagger UI renders every operation anew at each click, which takes seconds on a busy machine.
_PATIENCE_MS = 60_000


@pytest.mark.parametrize("operation", ["poll", "poll_named"])
def test_try_it_out_starts_with_a_peek(visit: Visit, operation: str) -> None:
    visit.page.set_default_timeout(_PATIENCE_MS)
    visit.page.goto(f"{visit.watch.url}/docs")
    block = visit.page.locator(f"#operations-inbox-{operation}")
    block.locator(".opblock-summary-control").click()
    block.get_by_role("button", name="Try it out").click()
    mode = block.locator("tr[data-param-name=mode] select")
    expect(mode).to_be_enabled(timeout=_PATIENCE_MS)
    expect(mode).to_have_value("peek", timeout=_PATIENCE_MS)
