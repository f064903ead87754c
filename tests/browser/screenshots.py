"""`python -m tests.browser.screenshots` takes the pictures of the console that the README shows."""

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, expect

from tests.browser import demo_shop
from tests.browser.console_tab import Visit
from tests.browser.page_monitor import Watch
from tests.engines import browser
from tests.service import Service

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
_DESKTOP = ViewportSize(width=1280, height=800)
_PHONE = ViewportSize(width=390, height=844)


def main() -> None:
    _IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder))
        key = demo_shop.furnish(service)
        try:
            service.start()
            with browser.running() as chromium:
                for scheme in ("light", "dark"):
                    _take(chromium, service.url, key, scheme)
        finally:
            service.kill()


def _take(chromium: Browser, url: str, key: str, scheme: str) -> None:
    for name, size, scale in (("", _DESKTOP, 1), ("-phone", _PHONE, 1.5)):
        context = chromium.new_context(viewport=size, device_scale_factor=scale, reduced_motion="reduce")
        visit = Visit(context.new_page(), Watch(url))
        visit.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        visit.open()
        visit.sign_in(key)
        visit.go("Overview")
        expect(visit.table("By event type")).to_contain_text("order.created")
        _picture(visit, f"overview{name}-{scheme}")
        visit.go("Events")
        expect(visit.row("Events", "order.created").first).to_be_visible()
        if name:
            _picture(visit, f"events{name}-{scheme}")
        else:
            visit.row("Events", "order.created").first.get_by_role("button").first.click()
            expect(visit.dialog("Event")).to_contain_text("Copies in named inboxes")
            _picture(visit, f"event-{scheme}")
        context.close()


def _picture(visit: Visit, name: str) -> None:
    visit.page.wait_for_load_state("networkidle")
    visit.page.screenshot(path=_IMAGES / f"console-{name}.png", animations="disabled")


if __name__ == "__main__":
    main()
