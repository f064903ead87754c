"""Settings from environment variables."""

from pathlib import Path

import pytest

from inbox.errors import SettingsError
from inbox.settings import Settings, read_settings


def read(**environment: str) -> Settings:
    return read_settings({"PATH": "/bin", **environment}, on_terminal=False)


def test_settings_have_their_documented_defaults() -> None:
    settings = read()
    assert (settings.store, settings.host, settings.port) == ("sqlite:///data/inbox.db", "127.0.0.1", 8080)
    assert (settings.retention_days, settings.max_event_bytes, settings.key_cache_seconds) == (30, 262_144, 30)
    assert (settings.lease_seconds, settings.max_deliveries, settings.rate_limit) == (60, 10, 0)


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"INBOX_PORT": "9000"}, "http://127.0.0.1:9000"),
        ({"INBOX_HOST": "0.0.0.0"}, "http://127.0.0.1:8080"),  # noqa: S104
        ({"INBOX_HOST": "::", "INBOX_PORT": "9000"}, "http://[::1]:9000"),
        ({"INBOX_HOST": "inbox.example"}, "http://inbox.example:8080"),
        ({"INBOX_PORT": "9000", "INBOX_URL": "https://inbox.example"}, "https://inbox.example"),
    ],
)
def test_url_follows_host_and_port_unless_it_is_set(environment: dict[str, str], url: str) -> None:
    assert read(**environment).url == url


def test_variables_override_defaults() -> None:
    settings = read(INBOX_PORT="9000", INBOX_STORE="sqlite:////srv/x.db", INBOX_MAX_EVENT_BYTES="10")
    assert (settings.port, settings.max_event_bytes) == (9000, 10)
    assert settings.sqlite_path == Path("/srv/x.db")


def test_store_with_three_slashes_is_a_relative_path() -> None:
    assert read(INBOX_STORE="sqlite:///data/x.db").sqlite_path == Path("data/x.db")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("INBOX_PORT", "http"),
        ("INBOX_PORT", ""),
        ("INBOX_PORT", "65536"),
        ("INBOX_PORT", "0"),
        ("INBOX_PORT", "-1"),
        ("INBOX_PORT", "٣"),
        ("INBOX_WORKERS", "0"),
        ("INBOX_MAX_EVENT_BYTES", "1e6"),
        ("INBOX_STORE", "postgres://x"),
        ("INBOX_STORE", "sqlite:///"),
        ("INBOX_STORE", "sqlite:///:memory:"),
        ("INBOX_LOG_FORMAT", "xml"),
        ("INBOX_HOST", " "),
        ("INBOX_TABLE_PREFIX", "a b"),
        ("INBOX_TRUSTED_PROXIES", "11"),
        ("INBOX_AUTH_FAILURE_LIMIT", "-1"),
        ("INBOX_AUTHORIZER_SECRET", "x" * 31),
        ("INBOX_AUTHORIZER_SECRET", "x" * 1025),
    ],
)
def test_invalid_value_is_refused_in_one_line(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(**{name: value})
    assert str(refused.value).startswith(f"{name} is not valid: ")
    assert str(refused.value).endswith(".")
    assert "\n" not in str(refused.value)


def test_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(SettingsError, match=r"^INBOX_PROT is not a setting\. Did you mean INBOX_PORT\?$"):
        read(INBOX_PROT="1")


def test_unknown_name_without_similar_names_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^INBOX_FOO is not a setting\.$"):
        read(INBOX_FOO="1")


@pytest.mark.parametrize(
    "name",
    [
        "INBOX_SERVICE_HOST",
        "INBOX_SERVICE_PORT",
        "INBOX_SERVICE_PORT_HTTP",
        "INBOX_SERVICE_PORT_HTTP_ALT",
        "INBOX_PORT_8080_TCP",
        "INBOX_PORT_8080_TCP_PROTO",
        "INBOX_PORT_8080_TCP_PORT",
        "INBOX_PORT_8080_TCP_ADDR",
        "INBOX_PORT_53_UDP_ADDR",
        "INBOX_PORT_9_SCTP",
    ],
)
def test_variables_of_a_kubernetes_service_are_ignored(name: str) -> None:
    assert read(**{name: "10.0.0.1"}) == read()


@pytest.mark.parametrize(
    "name",
    [
        "INBOX_SERVICE",
        "INBOX_SERVICE_HOSTS",
        "INBOX_SERVICE_PORTS",
        "INBOX_SERVICE_PORT_",
        "INBOX_SERVICE_PORT_http",
        "INBOX_PORT_HTTP_TCP",
        "INBOX_PORT_8080",
        "INBOX_PORT_8080_TCP_HOST",
        "INBOX_PORT_8080_ICMP",
        "INBOX_CRM_SERVICE_HOST",
    ],
)
def test_name_similar_to_a_kubernetes_variable_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{name} is not a setting\."):
        read(**{name: "10.0.0.1"})


def test_port_set_by_kubernetes_is_refused_with_a_hint() -> None:
    with pytest.raises(SettingsError) as refused:
        read(INBOX_PORT="tcp://10.0.0.1:8080")
    assert str(refused.value) == (
        "INBOX_PORT is not valid: it must be a whole number from 1 to 65535. Kubernetes sets INBOX_PORT to an "
        "address if a service is named inbox: set enableServiceLinks: false in the pod's spec, rename the service, "
        "or set INBOX_PORT for the container."
    )


def test_logs_are_text_on_a_terminal_by_default() -> None:
    assert read_settings({}, on_terminal=True).log_format == "text"
    assert read_settings({}, on_terminal=False).log_format == "json"
    assert read_settings({"INBOX_LOG_FORMAT": "json"}, on_terminal=True).log_format == "json"


def test_secrets_are_hidden() -> None:
    assert read(INBOX_API_KEY="ibx_secret").as_variables()["INBOX_API_KEY"] == "(hidden)"
    assert "ibx_secret" not in repr(read(INBOX_API_KEY="ibx_secret"))
    assert read(INBOX_API_KEY="").as_variables()["INBOX_API_KEY"] == ""
    assert read(INBOX_AUTHORIZER_SECRET="s" * 32).as_variables()["INBOX_AUTHORIZER_SECRET"] == "(hidden)"


@pytest.mark.parametrize(("store", "expected"), [("sqlite:///inbox.db", 0), ("dynamodb://", 1_000)])
def test_settle_time_depends_on_the_engine(store: str, expected: int) -> None:
    assert read_settings({"INBOX_STORE": store}, on_terminal=False).settle_ms == expected
    assert read_settings({"INBOX_STORE": store, "INBOX_SETTLE_MS": "250"}, on_terminal=False).settle_ms == 250
