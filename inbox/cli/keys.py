"""inbox keys …"""

import click

from inbox.cli.environment import open_keys
from inbox.cli.output import json_option, print_rows
from inbox.cli.parameters import KEY_NAME, MAX_DURATION_SECONDS, TENANT_ID, duration_between
from inbox.domain.keys import DEFAULT_SCOPES, MAX_OVERLAP_SECONDS, TENANT_SCOPES, Scope, key_document
from inbox.domain.timestamps import format_timestamp

_COLUMNS = ("key_id", "name", "hint", "scopes", "status", "created_at", "last_used_at", "expires_at")
_ALL = "all"

_tenant_id = click.argument("tenant_id", metavar="TENANT", type=TENANT_ID)


@click.group()
def keys() -> None:
    """Manage the API keys of tenants."""


@keys.command()
@_tenant_id
@click.option("--name", default="", type=KEY_NAME, help="What the key is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([_ALL, *map(str, Scope)]),
    help="What the key may do. Repeatable. `all` is every scope but admin. Default: events:write and inbox:read.",
)
@click.option(
    "--expires-in",
    "lifetime_seconds",
    type=duration_between(1, MAX_DURATION_SECONDS),
    help="Lifetime: a number followed by s, m, h or d, from 1s to 36500d. Default: never expires.",
)
def create(tenant_id: str, name: str, scopes: tuple[str, ...], lifetime_seconds: int | None) -> None:
    """Create a key and print it. It cannot be shown again."""
    named = {Scope(scope) for scope in scopes if scope != _ALL}
    chosen = (named | TENANT_SCOPES if _ALL in scopes else named) or DEFAULT_SCOPES
    service = open_keys()
    expires_at_ms = None if lifetime_seconds is None else service.now_ms() + lifetime_seconds * 1000
    click.echo(service.create(tenant_id, name, chosen, expires_at_ms).key)


@keys.command("list")
@_tenant_id
@json_option
def list_keys(tenant_id: str, *, as_json: bool) -> None:
    """List a tenant's keys, oldest first. Secrets are not shown."""
    print_rows([key_document(key) for key in open_keys().list(tenant_id)], _COLUMNS, as_json=as_json)


@keys.command()
@click.argument("key_id")
def revoke(key_id: str) -> None:
    """Revoke a key."""
    open_keys().revoke(key_id)
    click.echo(f"Key {key_id} revoked. Takes effect within INBOX_KEY_CACHE_SECONDS seconds.", err=True)


@keys.command()
@click.argument("key_id")
@click.option(
    "--overlap",
    "overlap_seconds",
    type=duration_between(0, MAX_OVERLAP_SECONDS),
    default="24h",
    show_default=True,
    help="How long the old key stays valid: a number followed by s, m, h or d, from 0s to 30d.",
)
def rotate(key_id: str, overlap_seconds: int) -> None:
    """Replace a key and print the new one. It cannot be shown again."""
    service = open_keys()
    expires_at_ms = service.get(key_id).expires_at_ms
    new = service.rotate(key_id, overlap_seconds)
    click.echo(new.key)
    end = "is no longer valid"
    if overlap_seconds:
        overlap_end_ms = new.metadata.created_at_ms + overlap_seconds * 1000
        end = f"is valid until {format_timestamp(min(overlap_end_ms, expires_at_ms or overlap_end_ms))}"
    click.echo(f"Key {new.metadata.key_id} replaces {key_id}, which {end}.", err=True)
