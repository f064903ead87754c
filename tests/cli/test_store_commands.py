"""inbox init, config, purge, backlog and recount, which need no running service."""

import json
from typing import Any

from inbox.domain.events import NewEvent, random_event_id
from inbox.store.dynamodb.tables import DEFINITIONS
from inbox.store.interface import Store
from tests.dynamodb.definitions import without_indexes
from tests.e2e.consumers import ALL_SCOPES, Client
from tests.engines.aws import dynamodb_client
from tests.service import Service

RETENTION_SECONDS = 30 * 86_400


def put_events(store: Store, tenant_id: str, count: int, *, expired: bool = False) -> None:
    now_ms = 1_000 if expired else store.now_ms()
    events = [NewEvent(random_event_id(), None, b"{}") for _ in range(count)]
    store.events.put(tenant_id, events, now_ms, 1 if expired else now_ms // 1000 + RETENTION_SECONDS)


def test_init_creates_the_database_and_may_be_repeated(service: Service) -> None:
    for _ in range(2):
        done = service.invoke("init")
        assert (done.returncode, done.stdout) == (0, "")
    assert (service.folder / "inbox.db").exists()


def create_events_table(service: Service, url: str) -> str:
    """Creates a table `Events` that lacks an index. Returns its name."""
    service.keep_in_dynamodb(url)
    name = f"{service.variables['INBOX_TABLE_PREFIX']}Events"
    dynamodb_client(url).create_table(TableName=name, **without_indexes("Events", "event-type-index"))
    return name


def test_init_names_the_index_that_it_creates(service: Service, new_dynamodb_local_url: str) -> None:
    table = create_events_table(service, new_dynamodb_local_url)
    step = f"Creating the index event-type-index of {table}. This takes long if the table is large.\n"
    for steps in (step, ""):
        done = service.invoke("init")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"{steps}dynamodb:// is ready.\n")


def test_init_enables_streams(service: Service, new_dynamodb_local_url: str) -> None:
    service.keep_in_dynamodb(new_dynamodb_local_url)
    assert service.invoke("init", "--streams").returncode == 0
    client, prefix = dynamodb_client(new_dynamodb_local_url), service.variables["INBOX_TABLE_PREFIX"]
    for name in DEFINITIONS:
        table = client.describe_table(TableName=f"{prefix}{name}")["Table"]
        assert table["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_init_does_not_change_tables_of_cloudformation(service: Service, moto_url: str) -> None:
    table = create_events_table(service, moto_url)
    client = dynamodb_client(moto_url)
    arn = client.describe_table(TableName=table)["Table"]["TableArn"]
    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "ManagedBy", "Value": "CloudFormation"}])
    done = service.invoke("init")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: CloudFormation manages the tables, so `inbox init` does not change them.")
    assert f"the index event-type-index of {table}" in done.stderr
    assert "`deploy/stack ENVIRONMENT data`" in done.stderr


def test_config_prints_every_setting_and_hides_secrets(service: Service) -> None:
    printed = service.invoke("config", INBOX_API_KEY="ibx_secret", INBOX_PORT="9999").stdout
    assert "INBOX_PORT=9999\n" in printed
    assert "INBOX_URL=http://127.0.0.1:9999\n" in printed
    assert "INBOX_RETENTION_DAYS=30\n" in printed
    assert "INBOX_API_KEY=(hidden)\n" in printed
    assert "ibx_secret" not in printed


def test_copy_to_the_same_file_is_wrong_usage(service: Service) -> None:
    service.invoke("init")
    (service.folder / "link.db").symlink_to(service.folder / "inbox.db")
    urls = [f"sqlite:///{service.folder}/{name}" for name in ("inbox.db", "link.db")]
    refused = service.invoke("copy", "--from", urls[0], "--to", urls[1])
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: --from and --to are the same store.\n")


def test_purge_deletes_expired_events_only(service: Service) -> None:
    with service.open_store() as store:
        put_events(store, "acme", 250, expired=True)
        put_events(store, "acme", 1)
        for purged in ("250\n", "0\n"):
            done = service.invoke("purge")
            assert (done.returncode, done.stdout, done.stderr) == (0, purged, "")
        assert store.events.purge(store.now_ms() + 2_000 * RETENTION_SECONDS, 10) == 1


def run_backlog_as_json(service: Service) -> dict[str, Any]:
    printed = service.invoke("backlog", "--json")
    assert (printed.returncode, printed.stderr) == (0, "")
    (line,) = printed.stdout.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def test_backlog_is_empty_without_undelivered_events(service_on_each_engine: Service) -> None:
    service_on_each_engine.invoke("tenants", "create", "acme")
    assert run_backlog_as_json(service_on_each_engine) == {
        "event": "backlog",
        "oldest_undelivered_seconds": 0,
        "tenant_id": None,
        "inbox": None,
        "waiting_inboxes": 0,
    }
    table = service_on_each_engine.invoke("backlog")
    assert (table.returncode, table.stdout) == (0, "tenant_id  inbox  oldest_at  age_seconds\n")
    assert table.stderr == "No undelivered events.\n"


def test_backlog_of_a_broken_store_prints_an_error_only(service: Service) -> None:
    (service.folder / "inbox.db").write_bytes(b"This is not a database. " * 100)
    refused = service.invoke("backlog", "--json")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "inbox.db is not a SQLite database. Check INBOX_STORE" in refused.stderr


def test_backlog_lists_inboxes_by_the_age_of_their_oldest_event(service_on_each_engine: Service) -> None:
    for tenant_id in ("acme", "beta", "gone"):
        service_on_each_engine.invoke("tenants", "create", tenant_id)
    with service_on_each_engine.open_store() as store:
        for tenant_id in ("gone", "acme", "beta"):
            put_events(store, tenant_id, 1)
    assert service_on_each_engine.invoke("tenants", "delete", "gone").returncode == 0

    found = run_backlog_as_json(service_on_each_engine)
    assert found["oldest_undelivered_seconds"] >= 0
    assert (found["tenant_id"], found["inbox"], found["waiting_inboxes"]) == ("acme", "default", 2)
    rows = [line.split() for line in service_on_each_engine.invoke("backlog").stdout.splitlines()[1:]]
    assert [row[:2] for row in rows] == [["acme", "default"], ["beta", "default"]]


def test_recount_no_longer_counts_erased_events(service: Service) -> None:
    acme, beta = (Client(service, service.create_key(each, *ALL_SCOPES)) for each in ("acme", "beta"))
    service.start()
    for client in (acme, beta):
        for number in range(3):
            client.send({"n": number})
        client.call("DELETE", f"/events/{client.get('/inbox?limit=1')[0]['id']}")
    service.stop()

    # Six counters change per tenant: received, delivered and bytes, each of the hour and of the day.
    for arguments, changed in (("acme",), 6), ((), 6), ((), 0):
        counted = service.invoke("recount", *arguments)
        assert (counted.returncode, counted.stdout) == (0, f"{changed}\n")
        assert counted.stderr == f"{changed} counters changed.\n"
    service.start()
    for client in (acme, beta):
        figures = client.call("GET", "/stats").json()
        assert (figures["totals"]["received"], figures["totals"]["delivered"], figures["undelivered"]) == (2, 0, 2)
