"""One browser for all tests of a process, and for each visit a context of its own."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from tests.browser.console_tab import Visit
from tests.browser.page_monitor import Watch
from tests.browser.tenant import Account, Api, admin_of, new_account
from tests.service import Service

_PATIENCE_MS = 15_000
expect.set_options(timeout=_PATIENCE_MS)
_DESKTOP = ViewportSize(width=1280, height=800)


@pytest.fixture(scope="session")
def admin(running_service: Service) -> Api:
    return admin_of(running_service)


@pytest.fixture
def account(admin: Api) -> Account:
    return new_account(admin)


@pytest.fixture
def new_visit(chromium: Browser) -> Iterator[Callable[[str], Visit]]:
    """With nothing of the others. What any of them did wrong is told at the end of the test."""
    visits: list[Visit] = []

    def begin(url: str) -> Visit:
        context = chromium.new_context(viewport=_DESKTOP)
        context.set_default_timeout(_PATIENCE_MS)
        watch = Watch(url)
        watch.over(context)
        visits.append(Visit(context.new_page(), watch))
        visits[-1].open()
        return visits[-1]

    yield begin
    for visit in visits:
        visit.page.context.close()
    for visit in visits:
        assert visit.watch.faults == []
        assert visit.watch.refusals == visit.watch.announced


@pytest.fixture
def visit(new_visit: Callable[[str], Visit], running_service: Service) -> Visit:
    """Not signed in."""
    return new_visit(running_service.url)


@pytest.fixture
def console(visit: Visit, account: Account) -> Visit:
    """Signed in with a key that may do whatever a tenant can."""
    visit.sign_in(account.key())
    return visit
