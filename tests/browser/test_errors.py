"""What goes wrong is said in words, with what an operator needs to find it."""

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.console_tab import Visit
from tests.browser.tenant import Account, admin_of, new_account
from tests.service import Service


def test_a_service_that_is_away_is_said_in_plain_words(service: Service, new_visit: Callable[[str], Visit]) -> None:
    admin = admin_of(service)
    service.start()
    visit = new_visit(service.url)
    visit.sign_in(new_account(admin).key())
    visit.watch.service_may_be_away = True
    service.stop()
    visit.go("Events")
    alert = visit.page.get_by_role("alert").filter(has_text="The service cannot be reached")
    expect(alert).to_be_visible()
    service.start()
    visit.go("Keys")
    visit.go("Events")
    expect(visit.table("Events")).to_be_visible()
    expect(visit.page.get_by_role("alert").filter(has_text="cannot")).to_have_count(0)


def test_what_could_not_be_loaded_can_be_tried_again(console: Visit) -> None:
    console.watch.service_may_be_away = True
    console.page.route("**/keys", lambda route: route.abort("connectionrefused"), times=1)
    console.go("Keys")
    expect(console.page.get_by_role("alert")).to_contain_text("The service cannot be reached")
    console.button("Try again").click()
    expect(console.row("API keys", "browser")).to_be_visible()
    expect(console.page.get_by_role("alert").filter(has_text="cannot")).to_have_count(0)


def test_a_refusal_names_its_request(console: Visit) -> None:
    console.watch.announce("POST", "/events", 409)
    console.go("Send")
    console.field("Idempotency key").fill("order-1001")
    console.button("Send event").click()
    expect(console.page.get_by_role("status").filter(has_text="Stored")).to_be_visible()
    console.field("Payload").fill('{"another": "event"}')
    with console.page.expect_response("**/events") as refused:
        console.button("Send event").click()
    expect(console.page.get_by_role("alert")).to_contain_text(refused.value.headers["x-request-id"])


def test_a_key_says_what_it_may_not(visit: Visit, account: Account) -> None:
    visit.sign_in(account.key("inbox:read"))
    visit.go("Keys")
    expect(visit.page.get_by_role("main")).to_contain_text("it lacks the scope tenant:manage")
    expect(visit.page.get_by_role("main")).to_contain_text(f"inbox keys create {account.tenant_id} --scope all")
    expect(visit.page.get_by_role("button", name="Create key")).to_have_count(0)
