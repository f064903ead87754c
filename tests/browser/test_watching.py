"""The other tests would tell: whatever a page must not do is seen, and so is what keeps people from using it."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.accessibility import barriers
from tests.browser.watching import Watch
from tests.service import Service

# What a page does → how the fault is told of that it is.
FAULTS = {
    "console.error('a word')": "console: a word",
    "setTimeout(() => { throw new Error('an error') })": "uncaught: an error",
    "void Promise.reject(new Error('another error'))": "uncaught: another error",
    "setTimeout(() => alert('a word'))": "dialog of the browser: a word",
    "document.body.setAttribute('onclick', 'pwned()')": "console: violated: script-src",
    "void fetch('http://inbox.example/').catch(() => 0)": "console: violated: connect-src",
    "setTimeout(() => location = 'http://127.0.0.1:9/')": "another host: http://127.0.0.1:9/",
}


@pytest.fixture
def watch(running_service: Service) -> Watch:
    return Watch(running_service.url)


@pytest.fixture
def page(chromium: Browser, watch: Watch) -> Iterator[Page]:
    context = chromium.new_context()
    watch.over(context)
    page = context.new_page()
    page.goto(watch.url)
    yield page
    context.close()


def test_every_fault_is_seen(page: Page, watch: Watch) -> None:
    for script, told in FAULTS.items():
        page.evaluate(f"() => {{ {script} }}")
        deadline = time.monotonic() + 15
        while not any(fault.startswith(told) for fault in watch.faults):
            assert time.monotonic() < deadline, (told, watch.faults)
            # In which what the browser tells is heard.
            page.wait_for_timeout(10)
        watch.faults.clear()


def test_a_refusal_is_seen(page: Page, watch: Watch) -> None:
    page.evaluate("() => fetch('/nowhere?x=1', {method: 'POST'})")
    assert (watch.refusals, watch.faults) == ({"POST /nowhere 404"}, [])
    watch.announce("POST", "/nowhere", 404)
    assert watch.refusals == watch.announced


def test_a_barrier_is_seen_while_the_content_policy_is_in_force(page: Page, watch: Watch) -> None:
    assert barriers(page) == []
    page.evaluate("() => document.querySelector('main').append(document.createElement('input'))")
    (barrier,) = barriers(page)
    assert barrier.startswith("label: ")
    assert watch.faults == []
