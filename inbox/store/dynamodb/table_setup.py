"""Creates, upgrades and checks the tables, for `inbox init`."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from inbox.errors import SettingsError, StoreUnavailable
from inbox.store.dynamodb.connection import AWS_ERRORS, Connection, error_code, translate_error
from inbox.store.dynamodb.layout import TENANTS
from inbox.store.dynamodb.schema import SCHEMA_VERSION, SchemaVersion
from inbox.store.dynamodb.tables import DEFINITIONS, RECOVERY_DAYS, STREAM_VIEW_TYPE, TTL_ATTRIBUTE

Report = Callable[[str], object]

# A new index of a large table takes long, and AWS refuses to change TTL twice within an hour.
_MAX_CHECKS = 3600
_PAUSE_SECONDS = 1
_CHANGING = ("CREATING", "UPDATING", "DELETING")
_HAS_TTL = ("ENABLED", "ENABLING")

# Another change of the table is in progress. botocore may also have repeated our own call after a lost response.
_IN_PROGRESS = ("LimitExceededException", "ResourceInUseException")
# An engine for tests does not have this operation.
_UNKNOWN_OPERATION = "UnknownOperationException"


def init_tables(connection: Connection, schema: SchemaVersion, *, streams: bool, report: Report) -> None:
    """Creates missing tables and indexes, configures all tables, and raises the schema version. Safe to repeat.

    It only checks tables that CloudFormation manages. `report` is called with a line for each step that takes long.
    """
    tables = {name: _Table(connection, name, streams, report) for name in DEFINITIONS}
    # Checks all tables first, so that nothing is changed if one belongs to another program or a later release.
    existing = {name: found for name, table in tables.items() if (found := table.describe()) is not None}
    for name, description in existing.items():
        tables[name].check(description)
    if TENANTS in existing:
        tables[TENANTS].wait_until_active()
        schema.get()
    managed = [name for name, description in existing.items() if tables[name].is_managed(description)]
    missing = [f"the table {table.name}" for name, table in tables.items() if managed and name not in existing]
    for name in managed:
        missing += [f"{each} of {tables[name].name}" for each in tables[name].missing_from(existing[name])]
    if missing:
        raise SettingsError(
            f"CloudFormation manages the tables, so `inbox init` does not change them. Missing: {', '.join(missing)}."
            " Update their stack with deploy/cloudformation/data.yaml (`deploy/stack ENVIRONMENT data`), then run"
            " `inbox init` again."
        )
    for name, table in tables.items():
        if name not in existing:
            table.create()
    for name, table in tables.items():
        table.wait_until_active()
        if name not in managed:
            table.complete()
    schema.write(SCHEMA_VERSION)


class _Table:
    def __init__(self, connection: Connection, name: str, streams: bool, report: Report) -> None:
        self.name = connection.table(name)
        self._connection = connection
        self._definition = DEFINITIONS[name]
        self._indexes: list[dict[str, Any]] = self._definition.get("GlobalSecondaryIndexes", [])
        self._stream = {"StreamEnabled": True, "StreamViewType": STREAM_VIEW_TYPE} if streams else None
        self._report = report

    def describe(self) -> dict[str, Any] | None:
        """Returns None if the table does not exist."""
        try:
            description: dict[str, Any] = self._connection.client.describe_table(TableName=self.name)["Table"]
        except AWS_ERRORS as error:
            if error_code(error) == "ResourceNotFoundException":
                return None
            raise translate_error(error) from error
        return description

    def check(self, description: dict[str, Any]) -> None:
        """Raises SettingsError if the table differs in a way that DynamoDB cannot change."""
        types = {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}
        # An attribute without a type is the key of a missing index.
        has_types = all(
            types.get(each["AttributeName"], "S") == "S" for each in self._definition["AttributeDefinitions"]
        )
        if description["KeySchema"] != self._definition["KeySchema"] or not has_types:
            raise SettingsError(f"The table {self.name} already exists with other keys.")
        existing = _indexes_of(description)
        for index in self._indexes:
            found = existing.get(index["IndexName"], index)
            if found["KeySchema"] != index["KeySchema"] or not _includes(found["Projection"], index["Projection"]):
                raise SettingsError(
                    f"The index {index['IndexName']} of the table {self.name} has other keys or too few attributes."
                    " DynamoDB cannot change an index, so a new one is needed: delete this one and run `inbox init`"
                    " again, or set another INBOX_TABLE_PREFIX."
                )
        view_type = _stream_of(description)
        if self._stream is not None and view_type not in (None, STREAM_VIEW_TYPE):
            raise SettingsError(
                f"The table {self.name} has a stream with the view type {view_type}, which DynamoDB cannot change."
                f" Disable the stream, then run `inbox init --streams` again: it enables one with {STREAM_VIEW_TYPE}."
            )

    def is_managed(self, description: dict[str, Any]) -> bool:
        """Returns True if a tag says that the table belongs to a stack of CloudFormation."""
        paginator = self._connection.client.get_paginator("list_tags_of_resource")
        try:
            pages = list(paginator.paginate(ResourceArn=description["TableArn"]))
        except AWS_ERRORS as error:
            if error_code(error) == _UNKNOWN_OPERATION:
                return False
            raise translate_error(error) from error
        tags = {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
        # CloudFormation does not add its own tags to global tables, so data.yaml has the second one.
        return "aws:cloudformation:stack-name" in tags or tags.get("ManagedBy") == "CloudFormation"

    def missing_from(self, description: dict[str, Any]) -> Iterator[str]:
        """Yields what `create` and `complete` would add."""
        existing = _indexes_of(description)
        for index in self._indexes:
            if index["IndexName"] not in existing:
                yield f"the index {index['IndexName']}"
        if self._read_ttl_status() not in _HAS_TTL:
            yield "TTL"
        if not self._has_recovery():
            yield "point-in-time recovery"
        if self._stream is not None and _stream_of(description) is None:
            yield f"a stream with {STREAM_VIEW_TYPE}"

    def create(self) -> None:
        stream = {} if self._stream is None else {"StreamSpecification": self._stream}
        try:
            self._connection.client.create_table(TableName=self.name, **self._definition, **stream)
        except AWS_ERRORS as error:
            # Another process created it, or botocore repeated our own call after a lost response.
            if error_code(error) != "ResourceInUseException":
                raise translate_error(error) from error

    def wait_until_active(self) -> None:
        self._wait_for(lambda: self._describe_active() is not None, f"Waiting for the table {self.name}.")

    def complete(self) -> None:
        """Adds what the table lacks. The service can use the table meanwhile."""
        # One at a time: DynamoDB accepts no second change of a table while the first is in progress.
        for index in self._indexes:
            step = f"Creating the index {index['IndexName']} of {self.name}. This takes long if the table is large."
            self._wait_for(partial(self._try_add_index, index), step)
        if self._stream is not None:
            self._wait_for(self._try_enable_stream, f"Enabling the stream of {self.name}.")
        step = f"Waiting until DynamoDB lets TTL of {self.name} be enabled, up to an hour after its last change."
        self._wait_for(self._try_enable_ttl, step)
        self._wait_for(self._try_enable_recovery, f"Enabling point-in-time recovery of {self.name}.")

    def _wait_for(self, is_done: Callable[[], bool], step: str) -> None:
        if is_done():
            return
        self._report(step)
        for _ in range(_MAX_CHECKS):
            time.sleep(_PAUSE_SECONDS)
            if is_done():
                return
        raise StoreUnavailable(f"Not finished after an hour: {step} To continue, run `inbox init` again.")

    def _describe_active(self) -> dict[str, Any] | None:
        """Returns None while the table or an index is being created, changed or deleted."""
        description = self.describe()
        if description is None or description["TableStatus"] != "ACTIVE":
            return None
        is_changing = any(index.get("IndexStatus") in _CHANGING for index in _indexes_of(description).values())
        return None if is_changing else description

    def _update(self, **changes: Any) -> None:
        try:
            self._connection.client.update_table(TableName=self.name, **changes)
        except AWS_ERRORS as error:
            if error_code(error) not in _IN_PROGRESS:
                raise translate_error(error) from error

    def _read_ttl_status(self) -> str:
        ttl = self._connection.call("describe_time_to_live", TableName=self.name)["TimeToLiveDescription"]
        status: str = ttl["TimeToLiveStatus"]
        if status in _HAS_TTL and ttl["AttributeName"] != TTL_ATTRIBUTE:
            raise SettingsError(
                f"The table {self.name} expires items by {ttl['AttributeName']}, not by {TTL_ATTRIBUTE}."
            )
        return status

    def _has_recovery(self) -> bool:
        response = self._connection.call("describe_continuous_backups", TableName=self.name)
        recovery = response["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
        return bool(recovery["PointInTimeRecoveryStatus"] == "ENABLED")

    # Each of these returns True when it is done, and is called until then.

    def _try_add_index(self, index: dict[str, Any]) -> bool:
        description = self._describe_active()
        if description is None:
            return False
        if index["IndexName"] in _indexes_of(description):
            return True
        names = {key["AttributeName"] for key in index["KeySchema"]}
        # DynamoDB refuses definitions of attributes that are no key yet.
        attributes = [each for each in self._definition["AttributeDefinitions"] if each["AttributeName"] in names]
        self._update(AttributeDefinitions=attributes, GlobalSecondaryIndexUpdates=[{"Create": index}])
        return False

    def _try_enable_stream(self) -> bool:
        description = self._describe_active()
        if description is None:
            return False
        if _stream_of(description) is not None:
            return True
        self._update(StreamSpecification=self._stream)
        return False

    def _try_enable_ttl(self) -> bool:
        status = self._read_ttl_status()
        if status != "DISABLED":
            # AWS refuses the call while the status is DISABLING.
            return status in _HAS_TTL
        specification = {"Enabled": True, "AttributeName": TTL_ATTRIBUTE}
        try:
            self._connection.client.update_time_to_live(TableName=self.name, TimeToLiveSpecification=specification)
        except AWS_ERRORS as error:
            # The last change was less than an hour ago.
            if error_code(error) != "ValidationException":
                raise translate_error(error) from error
            return False
        return True

    def _try_enable_recovery(self) -> bool:
        specification = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": RECOVERY_DAYS}
        try:
            self._connection.client.update_continuous_backups(
                TableName=self.name, PointInTimeRecoverySpecification=specification
            )
        except AWS_ERRORS as error:
            # A table that was just created is not ready for backups at once.
            if error_code(error) == "ContinuousBackupsUnavailableException":
                return False
            if error_code(error) != _UNKNOWN_OPERATION:
                raise translate_error(error) from error
        return True


def _indexes_of(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {index["IndexName"]: index for index in description.get("GlobalSecondaryIndexes", [])}


def _stream_of(description: dict[str, Any]) -> str | None:
    """Returns the view type of the table's stream, or None if it has no stream."""
    stream: dict[str, Any] = description.get("StreamSpecification", {})
    return stream["StreamViewType"] if stream.get("StreamEnabled") else None


def _includes(existing: dict[str, Any], needed: dict[str, Any]) -> bool:
    if "ALL" in (existing["ProjectionType"], needed["ProjectionType"]):
        return bool(existing["ProjectionType"] == "ALL")
    return set(needed.get("NonKeyAttributes", [])) <= set(existing.get("NonKeyAttributes", []))
