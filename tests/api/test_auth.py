"""Headers that may contain the key, GET /me, and sealed principals."""

import base64

import pytest
from flask.testing import FlaskClient

from authorizer import apikey, sealing
from authorizer.resolver import KeyRecord, Principal
from inbox.app import Shared, create_app
from inbox.services.keys import KeyService
from inbox.settings import Settings
from inbox.store.interface import Store
from tests.api.conftest import ApiClient, now_ms


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_key_is_accepted_in_each_header(client: FlaskClient, acme: ApiClient) -> None:
    for headers in (
        {"Authorization": f"Bearer {acme.key}"},
        {"Authorization": f"bearer  {acme.key}"},
        {"Authorization": f"BEARER\t{acme.key}"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff:" + acme.key.encode()).decode()},
        {"X-API-Key": acme.key},
        {"Authorization": basic(acme.key, "")},
        {"Authorization": basic("", acme.key)},
        {"Authorization": basic("zapier", acme.key)},
        {"Authorization": basic(acme.key, acme.key)},
        {"Authorization": f"Bearer {acme.key}", "X-API-Key": acme.key},
    ):
        assert client.get("/me", headers=headers).status_code == 200, headers


def test_misplaced_or_contradictory_keys_get_the_same_401(client: FlaskClient, acme: ApiClient) -> None:
    responses = {}
    for headers in (
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": f"Digest {acme.key}"},
        {"Authorization": acme.key},
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff:\xff").decode()},
        {"Authorization": f"Bearer {acme.key}", "X-API-Key": apikey.mint()},
        {"Authorization": basic(acme.key, apikey.mint())},
        {"X-API-Key": acme.key + "x"},
        {"Authorization": f"Bearer {acme.key}", "X-API-Key": acme.key + "x"},
        {"Authorization": f"Bearer {acme.key},Bearer {acme.key}", "X-API-Key": acme.key},
        {"Authorization": f"Bearer\xa0{acme.key}"},
    ):
        response = client.get("/me", headers=headers)
        assert response.status_code == 401, headers
        document = {name: value for name, value in response.get_json().items() if name != "request_id"}
        responses[(response.headers["WWW-Authenticate"], response.content_type, str(document))] = headers
    assert len(responses) == 1


def test_me_shows_the_key(key_service: KeyService, acme: ApiClient) -> None:
    assert acme.get("/me").get_json() == {
        "tenant_id": "acme",
        "tenant_name": "Acme Corp.",
        "key_id": key_service.list("acme")[0].key_id,
        "scopes": ["events:write", "inbox:read"],
    }


@pytest.mark.parametrize(("secret", "status"), [("s" * 32, 200), ("", 401)])
def test_sealed_principal_is_accepted_only_with_a_secret(store: Store, secret: str, status: int) -> None:
    client = create_app(Settings(authorizer_secret=secret), store, Shared()).test_client()
    # The store does not know this key, so a 200 shows that the service trusted the seal.
    key = apikey.mint()
    record = KeyRecord(Principal("acme", "Acme Corp.", True, "key_1", frozenset({"inbox:read"})))
    seal = sealing.seal(apikey.hash_of(key), record, now_ms(), "s" * 32)

    headers = {"Authorization": f"Bearer {key}", "X-Inbox-Principal": seal}
    assert client.get("/me", headers=headers).status_code == status
    assert client.get("/keys", headers=headers).status_code == 401
