"""Two tenants, and where accounts are handed in."""

from collections.abc import Callable, Iterator

import pytest

from tests.service import Service
from tests.torture.delivery_report import Account
from tests.torture.summary import ACCOUNT, short
from tests.torture.workload import Crowd

TENANTS = ("acme", "globex")


@pytest.fixture
def crowd_of() -> Iterator[Callable[..., Crowd]]:
    """Of services that share a store, with nobody in it yet."""
    crowds: list[Crowd] = []

    def gather(*services: Service) -> Crowd:
        crowds.append(Crowd(services, {tenant: services[0].create_key(tenant) for tenant in TENANTS}))
        return crowds[-1]

    yield gather
    for crowd in crowds:
        crowd.leave()


@pytest.fixture
def hand_in(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Callable[[Account], None]:
    """Puts the account on record, and fails where anything in it is wrong."""

    def hand_in(account: Account) -> None:
        figures = account.figures()
        record_property(ACCOUNT, (short(request.node.nodeid), figures))
        assert account.wrong == {}, figures

    return hand_in
