"""inbox recount, as an operator runs it."""

from tests.e2e.consumers import ALL_SCOPES, Client
from tests.service import Service


def test_what_was_erased_is_not_counted_any_more(service: Service) -> None:
    acme, beta = (Client(service, service.create_key(each, *ALL_SCOPES)) for each in ("acme", "beta"))
    service.start()
    for client in (acme, beta):
        for number in range(3):
            client.send({"n": number})
        client.call("DELETE", f"/events/{client.get('/inbox?limit=1')[0]['id']}")
    service.stop()

    # Received, delivered and bytes, for the hour and the day.
    for arguments, changed in (("acme",), 6), ((), 6), ((), 0):
        counted = service.run("recount", *arguments)
        assert (counted.returncode, counted.stdout, counted.stderr) == (0, f"{changed}\n", "")
    service.start()
    for client in (acme, beta):
        figures = client.call("GET", "/stats").json()
        assert (figures["totals"]["received"], figures["totals"]["delivered"], figures["undelivered"]) == (2, 0, 2)


def test_a_tenant_that_is_not_there_is_one_clear_line(service: Service) -> None:
    service.run("init")
    refused = service.run("recount", "nobody")
    assert (refused.returncode, refused.stdout, refused.stderr) == (1, "", "error: The tenant does not exist.\n")


def test_a_store_that_is_not_there_is_not_made(service: Service) -> None:
    refused = service.run("recount")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert list(service.folder.glob("*.db")) == []
