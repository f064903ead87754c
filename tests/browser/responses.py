"""Responses that a test delays or replaces by an error."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Route

from tests.browser.console_tab import ConsoleTab

REQUEST_ID = "the-id-of-this-request"


@contextmanager
def delayed(tab: ConsoleTab, method: str, path: str, query: str = "") -> Iterator[None]:
    """Holds back matching requests until the end of the block."""
    held: list[Route] = []
    with _intercepted(tab, method, path, query, held.append):
        yield
        for route in held:
            route.continue_()


@contextmanager
def failing(tab: ConsoleTab, method: str, path: str, status: int, query: str = "") -> Iterator[None]:
    """Responds to matching requests with a problem document, and expects at least one of them."""
    tab.monitor.expect_error(method, path, status)
    problem = json.dumps({"title": f"Failed with {status}", "detail": "Try again.", "request_id": REQUEST_ID})

    def fail(route: Route) -> None:
        route.fulfill(status=status, content_type="application/problem+json", body=problem)

    with _intercepted(tab, method, path, query, fail):
        yield


@contextmanager
def _intercepted(
    tab: ConsoleTab, method: str, path: str, query: str, handle: Callable[[Route], object]
) -> Iterator[None]:
    def matches(url: str) -> bool:
        parts = urlsplit(url)
        return parts.path == path and query in parts.query

    def dispatch(route: Route) -> None:
        if route.request.method == method:
            handle(route)
        else:
            route.fallback()

    tab.page.route(matches, dispatch)
    yield
    tab.page.unroute(matches, dispatch)
