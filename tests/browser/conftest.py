"""One browser per test process, and one browser context per console tab."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from tests.browser.console_tab import ConsoleTab
from tests.browser.page_monitor import PageMonitor
from tests.browser.tenant import ApiClient, Tenant, create_admin, create_tenant
from tests.service import Service

_TIMEOUT_MS = 15_000
expect.set_options(timeout=_TIMEOUT_MS)
_DESKTOP = ViewportSize(width=1280, height=800)


@pytest.fixture(scope="session")
def admin(running_service: Service) -> ApiClient:
    return create_admin(running_service)


@pytest.fixture
def tenant(admin: ApiClient) -> Tenant:
    return create_tenant(admin)


@pytest.fixture
def api(tenant: Tenant) -> ApiClient:
    return tenant.create_client()


@pytest.fixture
def new_tab(chromium: Browser) -> Iterator[Callable[[str], ConsoleTab]]:
    """Opens isolated tabs. The test fails at its end if a page had errors or policy violations."""
    tabs: list[ConsoleTab] = []

    def create(url: str) -> ConsoleTab:
        context = chromium.new_context(viewport=_DESKTOP)
        context.set_default_timeout(_TIMEOUT_MS)
        monitor = PageMonitor(url)
        monitor.attach(context)
        tabs.append(ConsoleTab(context.new_page(), monitor))
        tabs[-1].open()
        return tabs[-1]

    yield create
    for tab in tabs:
        tab.page.context.close()
    for tab in tabs:
        tab.monitor.verify()


@pytest.fixture
def tab(new_tab: Callable[[str], ConsoleTab], running_service: Service) -> ConsoleTab:
    """The sign-in page."""
    return new_tab(running_service.url)


@pytest.fixture
def console(tab: ConsoleTab, tenant: Tenant) -> ConsoleTab:
    """The console, signed in with every scope of a tenant."""
    tab.sign_in(tenant.create_key())
    return tab
