"""inbox tenants …"""

from typing import Any

import click

from inbox.cli.environment import OPERATOR, open_tenants
from inbox.cli.output import json_option, print_rows
from inbox.cli.parameters import EMAIL, ORGANIZATION_NAME, TENANT_ID, WholeNumber
from inbox.domain import exact_json
from inbox.domain.tenants import MAX_RATE_LIMIT, Tenant, TenantStatus, audit_document, tenant_document

_COLUMNS = ("tenant_id", "organization_name", "email", "status", "active", "date_created")
_AUDIT_COLUMNS = ("number", "at", "by", "action", "forced", "changes")
_MAX_ENTRIES = 1_000
_RESTORE_HINT = "`inbox tenants restore {}` restores it."

_tenant_id = click.argument("tenant_id", metavar="ID", type=TENANT_ID)
_organization_name = click.option("--name", "organization_name", type=ORGANIZATION_NAME, help="Organization.")
_email = click.option("--email", type=EMAIL, help="Contact address; unique among tenants.")


@click.group()
def tenants() -> None:
    """Manage tenants."""


@tenants.command()
@_tenant_id
@_organization_name
@_email
def create(tenant_id: str, **members: str | None) -> None:
    """Create a tenant, with the status REGISTERED, and print its ID."""
    tenant = open_tenants(create_store=True).create(OPERATOR, tenant_id, status=TenantStatus.REGISTERED, **members)
    click.echo(tenant.tenant_id)


@tenants.command("list")
@json_option
def list_tenants(*, as_json: bool) -> None:
    """List all tenants, including deleted ones."""
    print_rows([tenant_document(tenant) for tenant in open_tenants().all()], _COLUMNS, as_json=as_json)


@tenants.command()
@_tenant_id
def show(tenant_id: str) -> None:
    """Print one tenant as JSON."""
    click.echo(exact_json.dump(tenant_document(open_tenants().get(tenant_id))))


@tenants.command()
@_tenant_id
@_organization_name
@_email
@click.option("--destination-email", type=EMAIL, help="Where mail for the tenant goes.")
@click.option("--rate-limit", type=WholeNumber(0, MAX_RATE_LIMIT), help="Requests per second; 0 is no limit.")
def update(tenant_id: str, **members: Any) -> None:
    """Change the given attributes of a tenant."""
    given = {name: value for name, value in members.items() if value is not None}
    if not given:
        raise click.UsageError("Nothing to change. Use at least one option.")
    open_tenants().update(tenant_id, OPERATOR, **given)
    click.echo(f"Tenant {tenant_id} updated.", err=True)


@tenants.command()
@_tenant_id
def suspend(tenant_id: str) -> None:
    """Refuse all keys of a tenant. Works from every status, and keeps the events."""
    _print_status(open_tenants().set_status(tenant_id, OPERATOR, TenantStatus.SUSPENDED))


@tenants.command()
@_tenant_id
def resume(tenant_id: str) -> None:
    """Return a tenant to the status it had before the suspension."""
    _print_status(open_tenants().resume(tenant_id, OPERATOR))


@tenants.command()
@_tenant_id
def delete(tenant_id: str) -> None:
    """Refuse all keys of a tenant and hide it. Nothing is erased, and `restore` reverts it."""
    open_tenants().delete(tenant_id, OPERATOR)
    click.echo(f"Tenant {tenant_id} deleted. {_RESTORE_HINT.format(tenant_id)}", err=True)


@tenants.command()
@_tenant_id
def restore(tenant_id: str) -> None:
    """Restore a deleted tenant."""
    tenant = open_tenants().restore(tenant_id, OPERATOR)
    click.echo(f"Tenant {tenant_id} restored. Status: {tenant.status}.", err=True)


@tenants.command()
@_tenant_id
@json_option
def audit(tenant_id: str, *, as_json: bool) -> None:
    """Print the audit log of a tenant, newest first."""
    entries, _ = open_tenants().audit(tenant_id, _MAX_ENTRIES)
    rows = [audit_document(entry) for entry in entries]
    if not as_json:
        for row in rows:
            row["changes"] = ", ".join(
                f"{name}: {' → '.join('-' if value is None else str(value) for value in change.values())}"
                for name, change in row["changes"].items()
            )
    print_rows(rows, _AUDIT_COLUMNS, as_json=as_json)


@tenants.command()
@_tenant_id
@click.argument("shards", metavar="N", type=WholeNumber(1, 100))
def shard(tenant_id: str, shards: int) -> None:
    """Spread a tenant's new events over N partitions of DynamoDB. Takes effect in one minute."""
    open_tenants().shard(tenant_id, shards)
    click.echo(f"New events of {tenant_id} go to {shards} partitions. Takes effect in one minute.", err=True)


def _print_status(tenant: Tenant) -> None:
    effect = "Takes effect within INBOX_KEY_CACHE_SECONDS seconds."
    if not tenant.active:
        effect = f"It is still deleted. {_RESTORE_HINT.format(tenant.tenant_id)}"
    click.echo(f"Tenant {tenant.tenant_id} is {tenant.status}. {effect}", err=True)
