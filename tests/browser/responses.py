"""Answers that a test holds back, or gives in the service's place."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from playwright.sync_api import Route

from tests.browser.console_tab import Visit

REQUEST_ID = "the-id-of-this-request"


@contextmanager
def held(visit: Visit, method: str, path: str, query: str = "") -> Iterator[None]:
    """Whatever is asked for like this waits for its answer until the end."""
    waiting: list[Route] = []
    with _answering(visit, method, path, query, waiting.append):
        yield
        for route in waiting:
            route.continue_()


@contextmanager
def refused(visit: Visit, method: str, path: str, status: int, query: str = "") -> Iterator[None]:
    visit.watch.announce(method, path, status)
    problem = json.dumps({"title": f"Refused with {status}", "detail": "Try again.", "request_id": REQUEST_ID})

    def refuse(route: Route) -> None:
        route.fulfill(status=status, content_type="application/problem+json", body=problem)

    with _answering(visit, method, path, query, refuse):
        yield


@contextmanager
def _answering(visit: Visit, method: str, path: str, query: str, answer: Callable[[Route], object]) -> Iterator[None]:
    def wanted(url: str) -> bool:
        parts = urlsplit(url)
        return parts.path == path and query in parts.query

    def handle(route: Route) -> None:
        if route.request.method == method:
            answer(route)
        else:
            route.fallback()

    visit.page.route(wanted, handle)
    yield
    visit.page.unroute(wanted, handle)
