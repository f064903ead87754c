"""The tables of release 0.1.0, with events in every state, as that release wrote them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inbox.store.dynamodb.connection import Connection, groups_of

_TABLES = Path(__file__).with_name("tables_of_release_0_1.json")


@dataclass(frozen=True)
class EarlierTables:
    connection: Connection
    now_ms: int
    """The time at which the earlier release wrote most of the items."""
    events: dict[str, dict[str, str]]
    """Event IDs by tenant and description."""
    leased_claim_id: str

    def ids(self, tenant_id: str, *descriptions: str) -> list[str]:
        return [self.events[tenant_id][each] for each in descriptions]


def create_tables(connection: Connection) -> EarlierTables:
    """Creates the tables under the prefix of the connection, and stores the items."""
    document: dict[str, Any] = json.loads(_TABLES.read_text())
    for name, definition in document["tables"].items():
        connection.call("create_table", TableName=connection.table(name), **definition)
    for name, items in document["items"].items():
        for group in groups_of(25, items):
            # The store's codec sends bytes as they are in the file.
            requests = [{"PutRequest": {"Item": item}} for item in group]
            connection.call("batch_write_item", RequestItems={connection.table(name): requests})
    return EarlierTables(connection, document["now_ms"], document["events"], document["leased_claim_id"])
