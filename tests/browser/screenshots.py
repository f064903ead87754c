"""`python -m tests.browser.screenshots` takes the screenshots of the console in docs/images."""

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, expect

from tests.browser import demo_shop
from tests.browser.console_tab import ConsoleTab
from tests.browser.page_monitor import PageMonitor
from tests.engines import browser
from tests.service import Service

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
_DESKTOP = ViewportSize(width=1280, height=800)
_PHONE = ViewportSize(width=390, height=844)


def main() -> None:
    _IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder))
        key = demo_shop.create(service)
        try:
            service.start()
            with browser.running() as chromium:
                for scheme in ("light", "dark"):
                    _take_screenshots(chromium, service.url, key, scheme)
        finally:
            service.kill()


def _take_screenshots(chromium: Browser, url: str, key: str, scheme: str) -> None:
    for suffix, size, scale in (("", _DESKTOP, 1), ("-phone", _PHONE, 1.5)):
        context = chromium.new_context(viewport=size, device_scale_factor=scale, reduced_motion="reduce")
        tab = ConsoleTab(context.new_page(), PageMonitor(url))
        tab.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        tab.open()
        tab.sign_in(key)
        tab.go("Overview")
        expect(tab.table("By event type")).to_contain_text("order.created")
        _save(tab, f"overview{suffix}-{scheme}")
        tab.go("Events")
        newest = tab.row("Events", "order.created").first
        expect(newest).to_be_visible()
        if suffix:
            _save(tab, f"events{suffix}-{scheme}")
        else:
            newest.get_by_role("button").first.click()
            expect(tab.dialog("Event")).to_contain_text("Copies in named inboxes")
            _save(tab, f"event-{scheme}")
        context.close()


def _save(tab: ConsoleTab, name: str) -> None:
    tab.page.wait_for_load_state("networkidle")
    tab.page.screenshot(path=_IMAGES / f"console-{name}.png", animations="disabled")


if __name__ == "__main__":
    main()
