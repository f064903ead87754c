"""Whatever a page must never do while a test uses it, whatever the test is about."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, Response

# Seen again in the console, where it can be read although the page's own scripts know nothing of it.
_REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", event =>
    console.error(`violated: ${event.violatedDirective} by ${event.blockedURI} in ${event.sourceFile}`));
"""
# The browser says this of each answer that is an error, and those are looked at themselves.
_SAID_OF_ANSWERS = "Failed to load resource"
# A page that leaves, or asks for something else, lets go of what it asked for before.
_LET_GO = "net::ERR_ABORTED"


@dataclass
class Watch:
    """Ends well without faults, and with just those refusals that the test has announced."""

    url: str
    faults: list[str] = field(default_factory=list)
    refusals: set[str] = field(default_factory=set)
    announced: set[str] = field(default_factory=set)
    service_may_be_away: bool = False

    def over(self, context: BrowserContext) -> None:
        context.add_init_script(_REPORT_VIOLATIONS)
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.faults.append(f"uncaught: {error.error}"))
        context.on("request", self._see_request)
        context.on("requestfailed", self._see_failure)
        context.on("response", self._see_response)
        context.on("page", self._follow)

    def announce(self, method: str, path: str, status: int) -> None:
        """That this call will be refused, once at least."""
        self.announced.add(f"{method} {path} {status}")

    def _follow(self, page: Page) -> None:
        page.on("dialog", self._refuse)

    def _refuse(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog of the browser: {dialog.message}")
        dialog.dismiss()

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert") and not message.text.startswith(_SAID_OF_ANSWERS):
            self.faults.append(f"console: {message.text}")

    def _see_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if f"{parts.scheme}://{parts.netloc}" != self.url and parts.scheme not in ("data", "blob"):
            self.faults.append(f"another host: {request.url}")

    def _see_failure(self, request: Request) -> None:
        if request.failure != _LET_GO and not self.service_may_be_away:
            self.faults.append(f"failed: {request.method} {request.url} {request.failure}")

    def _see_response(self, response: Response) -> None:
        if response.status >= 400:
            path = urlsplit(response.url).path
            self.refusals.add(f"{response.request.method} {path} {response.status}")
