"""Settings, read once from environment variables and validated."""

import difflib
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from authorizer.sealing import parse_secret
from inbox.domain.tenants import MAX_RATE_LIMIT
from inbox.errors import SettingsError

PREFIX = "INBOX_"
SQLITE = "sqlite:///"
DYNAMODB = "dynamodb://"
# The index usually lags by less than a second.
_DYNAMODB_SETTLE_MS = 1_000
TABLE_PREFIX = "[A-Za-z0-9_.-]{0,100}"
# Kubernetes sets these in every pod if its namespace has a service named `inbox`.
_SERVICE_LINK = re.compile(
    r"INBOX_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)|INBOX_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?", re.ASCII
)

# How commands on the same machine reach a service that listens on every address.
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nosec B104


def _integer(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text, re.ASCII) or not minimum <= int(text) <= maximum:
            raise ValueError(f"a whole number from {minimum} to {maximum}")
        return int(text)

    return parse


def _port(text: str) -> int:
    try:
        return _integer(1, 65535)(text)
    except ValueError as error:
        if not text.startswith(("tcp://", "udp://", "sctp://")):
            raise
        raise ValueError(
            f"{error}. Kubernetes sets INBOX_PORT to an address if a service is named inbox: "
            "set enableServiceLinks: false in the pod's spec, rename the service, or set INBOX_PORT for the container"
        ) from None


def _store(text: str) -> str:
    if text != DYNAMODB and (not text.startswith(SQLITE) or text.removeprefix(SQLITE) in ("", ":memory:")):
        raise ValueError(f"{SQLITE}PATH, the path of a file, or {DYNAMODB}")
    return text


def _matching(pattern: str, description: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(description)
        return text

    return parse


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not empty")
    return text.strip()


def _setting(default: Any, parse: Callable[[str], Any], *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"parse": parse, "secret": secret})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is the variable INBOX_<NAME>. See docs/reference/settings.md."""

    store: str = _setting("sqlite:///data/inbox.db", _store)
    table_prefix: str = _setting(
        "", _matching(TABLE_PREFIX, "up to 100 letters, digits, dots, underscores and hyphens")
    )
    host: str = _setting("127.0.0.1", _not_empty)
    port: int = _setting(8080, _port)
    workers: int = _setting(min(os.cpu_count() or 1, 4), _integer(1, 256))
    threads: int = _setting(12, _integer(1, 1024))
    retention_days: int = _setting(30, _integer(1, 36500))
    max_event_bytes: int = _setting(262_144, _integer(1, 64 * 1024 * 1024))
    lease_seconds: int = _setting(60, _integer(1, 43200))
    settle_ms: int | None = _setting(None, _integer(0, 60_000))
    list_delivered: str = _setting("on", _matching("on|off", "on or off"))
    max_deliveries: int = _setting(10, _integer(1, 1_000_000))
    key_cache_seconds: int = _setting(30, _integer(0, 86400))
    rate_limit: int = _setting(0, _integer(0, MAX_RATE_LIMIT))
    auth_failure_limit: int = _setting(300, _integer(0, 1_000_000))
    trusted_proxies: int = _setting(0, _integer(0, 10))
    authorizer_secret: str = _setting("", parse_secret, secret=True)
    log_format: str = _setting("json", _matching("text|json", "text or json"))
    api_key: str = _setting("", str.strip, secret=True)
    url: str = _setting("", _not_empty)

    def __post_init__(self) -> None:
        if self.settle_ms is None:
            object.__setattr__(self, "settle_ms", 0 if self.sqlite_path else _DYNAMODB_SETTLE_MS)
        if not self.url:
            object.__setattr__(self, "url", f"http://{_join(_LOOPBACK.get(self.host, self.host), self.port)}")

    @property
    def address(self) -> str:
        """The address on which the service listens, as host:port."""
        return _join(self.host, self.port)

    @property
    def sqlite_path(self) -> Path | None:
        """The file of the embedded store, or None for DynamoDB."""
        return None if self.store == DYNAMODB else Path(self.store.removeprefix(SQLITE))

    @property
    def engine(self) -> str:
        return "dynamodb" if self.sqlite_path is None else "sqlite"

    def as_variables(self) -> dict[str, str]:
        """Returns every setting by the name of its variable. Secrets are hidden."""
        return {
            variable_of(each.name): "(hidden)"
            if each.metadata["secret"] and getattr(self, each.name)
            else str(getattr(self, each.name))
            for each in fields(self)
        }


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def variable_of(name: str) -> str:
    return PREFIX + name.upper()


def read_settings(environment: Mapping[str, str], *, on_terminal: bool) -> Settings:
    """Returns the settings. Raises SettingsError, with a message of one line, at the first invalid variable.

    On a terminal, the default format of the log is text.
    """
    known = {variable_of(each.name): each for each in fields(Settings)}
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and variable not in known and not _SERVICE_LINK.fullmatch(variable):
            nearest = difflib.get_close_matches(variable, known, n=1, cutoff=0.8)
            hint = f" Did you mean {nearest[0]}?" if nearest else ""
            raise SettingsError(f"{variable} is not a setting.{hint}")
    values: dict[str, Any] = {"log_format": "text"} if on_terminal else {}
    for variable, each in known.items():
        if variable in environment:
            try:
                values[each.name] = each.metadata["parse"](environment[variable])
            except ValueError as error:
                raise SettingsError(f"{variable} is not valid: it must be {error}.") from None
    return Settings(**values)
