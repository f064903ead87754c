"""A hook in botocore that refuses the store's queries of an index if they bypass the check of its entries."""

import sys
from types import FrameType
from typing import Any

from inbox.store.dynamodb import connection as connection_module
from inbox.store.dynamodb.connection import Connection

_STORE = connection_module.__name__.rpartition(".")[0]
_CHECKED_READ = Connection.query.__code__


def refuse_unchecked_index_reads(connection: Connection) -> None:
    """Makes the store's queries of an index fail, unless `Connection.query` makes them. Tests may read as they like."""
    for client in (connection.client, connection._client_without_retries):
        client.meta.events.register("provide-client-params.dynamodb.Query", _refuse_unless_checked)


def _refuse_unless_checked(params: dict[str, Any], **_: Any) -> None:
    if "IndexName" not in params:
        return
    is_read_by_store = False
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not _CHECKED_READ:
        module = str(frame.f_globals.get("__name__"))
        is_read_by_store |= module.startswith(_STORE) and module != connection_module.__name__
        frame = frame.f_back
    is_checked = frame is not None
    assert is_checked or not is_read_by_store, f"{params['IndexName']} is read without a check: use Connection.query"
