"""inbox tenants …"""

from typing import Any

import click

from inbox.cli.environment import OPERATOR, open_registry
from inbox.cli.output import as_json as as_json_option
from inbox.cli.output import print_rows
from inbox.domain.tenants import MAX_RATE_LIMIT, Tenant, TenantStatus, audit_document, tenant_document

_COLUMNS = ("tenant_id", "organization_name", "email", "status", "active", "date_created")
_AUDIT_COLUMNS = ("number", "at", "by", "action", "forced", "changes")
_MAX_ENTRIES = 1_000

_tenant_id = click.argument("tenant_id", metavar="ID")


@click.group()
def tenants() -> None:
    """Who has an inbox here."""


@tenants.command()
@_tenant_id
@click.option("--name", help="The organisation's name.")
@click.option("--email", help="Whom to write to; no two tenants have the same.")
def create(tenant_id: str, name: str | None, email: str | None) -> None:
    """Make a tenant, registered and ready for its first key."""
    with open_registry() as registry:
        tenant = registry.create(
            OPERATOR, tenant_id, status=TenantStatus.REGISTERED, organization_name=name, email=email
        )
    click.echo(tenant.tenant_id)


@tenants.command("list")
@as_json_option
def list_tenants(*, as_json: bool) -> None:
    """Every tenant, deleted ones too."""
    with open_registry(create=False) as registry:
        rows = [tenant_document(tenant) for tenant in registry.all()]
    print_rows(rows, _COLUMNS, as_json=as_json)


@tenants.command()
@_tenant_id
def show(tenant_id: str) -> None:
    """All that is known of a tenant, as JSON."""
    with open_registry(create=False) as registry:
        row = tenant_document(registry.get(tenant_id))
    print_rows([row], tuple(row), as_json=True)


@tenants.command()
@_tenant_id
@click.option("--name", "organization_name", help="The organisation's name.")
@click.option("--email", help="Whom to write to.")
@click.option("--destination-email", help="Where its own mail goes.")
@click.option("--rate-limit", type=click.IntRange(0, MAX_RATE_LIMIT), help="Requests a second; 0 is no limit.")
def update(tenant_id: str, **members: Any) -> None:
    """Change what is given, and leave the rest."""
    given = {name: value for name, value in members.items() if value is not None}
    if not given:
        raise click.UsageError("There is nothing to change.")
    with open_registry() as registry:
        registry.update(tenant_id, OPERATOR, **given)
    click.echo(f"{tenant_id} is changed.", err=True)


@tenants.command()
@_tenant_id
def suspend(tenant_id: str) -> None:
    """Refuse every key of a tenant, whatever its status; its events are kept."""
    with open_registry() as registry:
        _show_status(registry.set_status(tenant_id, OPERATOR, TenantStatus.SUSPENDED))


@tenants.command()
@_tenant_id
def resume(tenant_id: str) -> None:
    """Return a suspended tenant to the status that it had before."""
    with open_registry() as registry:
        _show_status(registry.resume(tenant_id, OPERATOR))


@tenants.command()
@_tenant_id
def delete(tenant_id: str) -> None:
    """Refuse every key of a tenant and take it out of the lists, until it is restored."""
    with open_registry() as registry:
        registry.delete(tenant_id, OPERATOR)
    click.echo(f"{tenant_id} is deleted; `inbox tenants restore {tenant_id}` brings it back.", err=True)


@tenants.command()
@_tenant_id
def restore(tenant_id: str) -> None:
    """Bring a deleted tenant back."""
    with open_registry() as registry:
        tenant = registry.restore(tenant_id, OPERATOR)
    click.echo(f"{tenant_id} is restored, and {tenant.status}.", err=True)


@tenants.command()
@_tenant_id
@as_json_option
def audit(tenant_id: str, *, as_json: bool) -> None:
    """Who changed a tenant, and when and how, the newest first."""
    with open_registry(create=False) as registry:
        entries, _ = registry.audit(tenant_id, _MAX_ENTRIES)
    rows = [audit_document(entry) for entry in entries]
    if not as_json:
        for row in rows:
            row["changes"] = [
                f"{name}: {' → '.join('-' if value is None else str(value) for value in change.values())}"
                for name, change in row["changes"].items()
            ]
    print_rows(rows, _AUDIT_COLUMNS, as_json=as_json)


@tenants.command()
@_tenant_id
@click.argument("shards", metavar="N", type=click.IntRange(1, 100))
def shard(tenant_id: str, shards: int) -> None:
    """Spread a heavy tenant's new events over N partitions of DynamoDB, from a minute from now on."""
    with open_registry() as registry:
        registry.shard(tenant_id, shards)
    click.echo(f"New events of {tenant_id} go to {shards} partitions, from a minute from now on.", err=True)


def _show_status(tenant: Tenant) -> None:
    click.echo(
        f"{tenant.tenant_id} is {tenant.status}; running servers follow within INBOX_KEY_CACHE_SECONDS.", err=True
    )
