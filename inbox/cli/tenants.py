"""inbox tenants …"""

from typing import Any

import click

from inbox.cli.environment import OPERATOR, open_tenants
from inbox.cli.output import json_option, print_rows
from inbox.domain import exact_json
from inbox.domain.tenants import MAX_RATE_LIMIT, Tenant, TenantStatus, audit_document, tenant_document

_COLUMNS = ("tenant_id", "organization_name", "email", "status", "active", "date_created")
_AUDIT_COLUMNS = ("number", "at", "by", "action", "forced", "changes")
_MAX_ENTRIES = 1_000

_tenant_id = click.argument("tenant_id", metavar="ID")


@click.group()
def tenants() -> None:
    """Manage tenants."""


@tenants.command()
@_tenant_id
@click.option("--name", help="The organisation's name.")
@click.option("--email", help="Contact address; unique among tenants.")
def create(tenant_id: str, name: str | None, email: str | None) -> None:
    """Create a tenant with the status REGISTERED, and print its ID."""
    with open_tenants(create_store=True) as service:
        tenant = service.create(
            OPERATOR, tenant_id, status=TenantStatus.REGISTERED, organization_name=name, email=email
        )
    click.echo(tenant.tenant_id)


@tenants.command("list")
@json_option
def list_tenants(*, as_json: bool) -> None:
    """List all tenants, including deleted ones."""
    with open_tenants() as service:
        rows = [tenant_document(tenant) for tenant in service.all()]
    print_rows(rows, _COLUMNS, as_json=as_json)


@tenants.command()
@_tenant_id
def show(tenant_id: str) -> None:
    """Print one tenant as JSON."""
    with open_tenants() as service:
        row = tenant_document(service.get(tenant_id))
    click.echo(exact_json.dump(row))


@tenants.command()
@_tenant_id
@click.option("--name", "organization_name", help="The organisation's name.")
@click.option("--email", help="Contact address; unique among tenants.")
@click.option("--destination-email", help="Where mail for the tenant goes.")
@click.option("--rate-limit", type=click.IntRange(0, MAX_RATE_LIMIT), help="Requests per second; 0 is no limit.")
def update(tenant_id: str, **members: Any) -> None:
    """Change the given attributes of a tenant."""
    given = {name: value for name, value in members.items() if value is not None}
    if not given:
        raise click.UsageError("Nothing to change. Use at least one option.")
    with open_tenants() as service:
        service.update(tenant_id, OPERATOR, **given)
    click.echo(f"{tenant_id} is changed.", err=True)


@tenants.command()
@_tenant_id
def suspend(tenant_id: str) -> None:
    """Refuse all keys of a tenant, whatever its status. Its events are kept."""
    with open_tenants() as service:
        _show_status(service.set_status(tenant_id, OPERATOR, TenantStatus.SUSPENDED))


@tenants.command()
@_tenant_id
def resume(tenant_id: str) -> None:
    """Return a suspended tenant to its status before."""
    with open_tenants() as service:
        _show_status(service.resume(tenant_id, OPERATOR))


@tenants.command()
@_tenant_id
def delete(tenant_id: str) -> None:
    """Refuse all keys of a tenant and hide it. Nothing is erased, and `restore` reverts it."""
    with open_tenants() as service:
        service.delete(tenant_id, OPERATOR)
    click.echo(f"{tenant_id} is deleted. `inbox tenants restore {tenant_id}` restores it.", err=True)


@tenants.command()
@_tenant_id
def restore(tenant_id: str) -> None:
    """Restore a deleted tenant."""
    with open_tenants() as service:
        tenant = service.restore(tenant_id, OPERATOR)
    click.echo(f"{tenant_id} is restored and {tenant.status}.", err=True)


@tenants.command()
@_tenant_id
@json_option
def audit(tenant_id: str, *, as_json: bool) -> None:
    """Print the audit log of a tenant, newest first."""
    with open_tenants() as service:
        entries, _ = service.audit(tenant_id, _MAX_ENTRIES)
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
    """Spread a large tenant's new events over N partitions of DynamoDB. Takes effect in one minute."""
    with open_tenants() as service:
        service.shard(tenant_id, shards)
    click.echo(f"New events of {tenant_id} go to {shards} partitions. Takes effect in one minute.", err=True)


def _show_status(tenant: Tenant) -> None:
    click.echo(
        f"{tenant.tenant_id} is {tenant.status}. Running services follow within INBOX_KEY_CACHE_SECONDS.", err=True
    )
