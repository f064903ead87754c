"""One tab with the console in it, as its user handles it."""

import re
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from tests.browser.page_monitor import Watch

VIEWS = ("Overview", "Events", "Inboxes", "Send", "Keys", "Connect")


@dataclass(frozen=True)
class Visit:
    page: Page
    watch: Watch

    def open(self) -> None:
        self.page.goto(self.watch.url)

    def sign_in(self, key: str) -> None:
        """Until the console is there."""
        self.try_key(key)
        expect(self.nav).to_be_visible()

    def try_key(self, key: str) -> None:
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()

    @property
    def nav(self) -> Locator:
        return self.page.get_by_role("navigation", name="Console")

    def go(self, view: str) -> None:
        """Until it is there."""
        self.nav.get_by_role("link", name=view, exact=True).click()
        expect(self.heading(view)).to_be_visible()

    def heading(self, view: str) -> Locator:
        return self.page.get_by_role("heading", name=view, level=2, exact=True)

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def table(self, name: str) -> Locator:
        return self.page.get_by_role("table", name=name)

    def row(self, table: str, text: str) -> Locator:
        """The one in which this stands."""
        return self.table(table).get_by_role("row").filter(has_text=text)

    def open_row(self, table: str, text: str) -> Locator:
        """What opens it, clicked."""
        opener = self.row(table, text).get_by_role("button").first
        opener.click()
        return opener

    def dialog(self, name: str) -> Locator:
        return self.page.get_by_role("dialog", name=name)

    def field(self, name: str) -> Locator:
        return self.page.get_by_label(re.compile(rf"^{name}\b"))

    def confirm(self, what: str) -> None:
        """The second word, in the dialog that asks for it."""
        asking = self.page.get_by_role("dialog").filter(has=self.button("Cancel"))
        asking.get_by_role("button", name=what).click()
        expect(asking).to_be_hidden()

    def overflow(self) -> int:
        """How far one could scroll to the side."""
        pixels: int = self.page.evaluate("() => document.scrollingElement.scrollWidth - innerWidth")
        return max(pixels, 0)
