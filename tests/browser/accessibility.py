"""Accessibility scans with axe-core.

axe runs in an isolated world beside the page's scripts, so the page's content security policy stays in force.
"""

from typing import Any

from playwright.sync_api import Page

from tests.engines import browser

_SCAN = """axe.run(document, {preload: false, resultTypes: ["violations"]}).then(found => found.violations
    .filter(each => ["serious", "critical"].includes(each.impact))
    .flatMap(each => each.nodes.map(node => `${each.id}: ${node.target.join(" ")}: ${node.failureSummary}`)))"""


def find_violations(page: Page) -> list[str]:
    """Returns the violations that axe rates serious or critical."""
    session = page.context.new_cdp_session(page)
    frame = session.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
    world = session.send("Page.createIsolatedWorld", {"frameId": frame, "worldName": "axe"})["executionContextId"]

    def evaluate(script: str) -> Any:
        options = {"contextId": world, "awaitPromise": True, "returnByValue": True}
        result = session.send("Runtime.evaluate", {"expression": script, **options})
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    if evaluate("typeof axe") == "undefined":
        evaluate(f"{browser.read_axe()};0")
    found: list[str] = evaluate(_SCAN)
    session.detach()
    return found
