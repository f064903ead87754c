"""A browser tab with the console (page object)."""

import re
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from tests.browser.page_monitor import PageMonitor

VIEWS = ("Overview", "Events", "Inboxes", "Send", "Keys", "Connect")


@dataclass(frozen=True)
class ConsoleTab:
    page: Page
    monitor: PageMonitor

    def open(self) -> None:
        self.page.goto(self.monitor.url)

    def sign_in(self, key: str) -> None:
        self.submit_key(key)
        expect(self.nav).to_be_visible()

    def submit_key(self, key: str) -> None:
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()

    @property
    def nav(self) -> Locator:
        return self.page.get_by_role("navigation", name="Console")

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    @property
    def confirmation(self) -> Locator:
        return self.page.get_by_role("dialog").filter(has=self.button("Cancel"))

    def go(self, view: str) -> None:
        self.nav.get_by_role("link", name=view, exact=True).click()
        expect(self.heading(view)).to_be_visible()

    def heading(self, view: str) -> Locator:
        return self.page.get_by_role("heading", name=view, level=2, exact=True)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def alert(self, text: str) -> Locator:
        return self.page.get_by_role("alert").filter(has_text=text)

    def status(self, text: str) -> Locator:
        return self.page.get_by_role("status").filter(has_text=text)

    def table(self, name: str) -> Locator:
        return self.page.get_by_role("table", name=name)

    def row(self, table: str, text: str) -> Locator:
        return self.table(table).get_by_role("row").filter(has_text=text)

    def open_row(self, table: str, text: str) -> Locator:
        """Clicks the button that opens the row, and returns it."""
        opener = self.row(table, text).get_by_role("button").first
        opener.click()
        return opener

    def dialog(self, name: str) -> Locator:
        return self.page.get_by_role("dialog", name=name)

    def open_event(self, event_type: str) -> Locator:
        """Opens an event of this type from the Events view. Returns its drawer."""
        self.go("Events")
        self.open_row("Events", event_type)
        return self.dialog("Event")

    def field(self, name: str) -> Locator:
        return self.page.get_by_label(re.compile(rf"^{name}\b"))

    def confirm(self, verb: str) -> None:
        confirmation = self.confirmation
        confirmation.get_by_role("button", name=verb).click()
        expect(confirmation).to_be_hidden()

    def read_stored_values(self) -> list[str]:
        return list(self.page.evaluate("() => Object.values(sessionStorage)"))

    def measure_overflow_px(self) -> int:
        """Returns the number of pixels the page can be scrolled sideways."""
        return max(0, int(self.page.evaluate("() => document.scrollingElement.scrollWidth - innerWidth")))
