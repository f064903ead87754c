"""Fails a test on script errors, policy violations, requests to other hosts and unexpected error responses."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Request, Response

_LOG_POLICY_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", event =>
    console.error(`violated: ${event.violatedDirective} by ${event.blockedURI} in ${event.sourceFile}`));
"""
# Chromium logs this for each error response. Those are checked by `expect_error`.
_ERROR_RESPONSE_LOG = "Failed to load resource"
# The page cancelled the request, for example by navigating away.
_CANCELLED = "net::ERR_ABORTED"


@dataclass
class PageMonitor:
    url: str
    errors: list[str] = field(default_factory=list)
    error_responses: set[str] = field(default_factory=set)
    expected_error_responses: set[str] = field(default_factory=set)
    allow_connection_errors: bool = False

    def attach(self, context: BrowserContext) -> None:
        context.add_init_script(_LOG_POLICY_VIOLATIONS)
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.errors.append(f"uncaught: {error.error}"))
        context.on("request", self._on_request)
        context.on("requestfailed", self._on_request_failed)
        context.on("response", self._on_response)
        context.on("page", lambda page: page.on("dialog", self._on_dialog))

    def expect_error(self, method: str, path: str, status: int) -> None:
        """Expects this error response at least once; otherwise the test fails."""
        self.expected_error_responses.add(f"{method} {path} {status}")

    def verify(self) -> None:
        assert self.errors == []
        assert self.error_responses == self.expected_error_responses

    def _on_dialog(self, dialog: Dialog) -> None:
        self.errors.append(f"browser dialog: {dialog.message}")
        dialog.dismiss()

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert") and not message.text.startswith(_ERROR_RESPONSE_LOG):
            self.errors.append(f"console: {message.text}")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if f"{parts.scheme}://{parts.netloc}" != self.url and parts.scheme not in ("data", "blob"):
            self.errors.append(f"another host: {request.url}")

    def _on_request_failed(self, request: Request) -> None:
        if request.failure != _CANCELLED and not self.allow_connection_errors:
            self.errors.append(f"failed: {request.method} {request.url} {request.failure}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            path = urlsplit(response.url).path
            self.error_responses.add(f"{response.request.method} {path} {response.status}")
