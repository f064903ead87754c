"""inbox serve and inbox quickstart"""

from contextlib import closing
from typing import Any

import click

from inbox.cli.environment import OPERATOR, read_environment
from inbox.cli.parameters import WholeNumber
from inbox.domain.keys import TENANT_SCOPES
from inbox.domain.tenants import TenantStatus
from inbox.server.gunicorn_config import serve as run_server
from inbox.server.logs import configure_logs
from inbox.services.keys import KeyService
from inbox.services.tenants import TenantService
from inbox.settings import Settings
from inbox.store.factory import open_store

_DEMO = "demo"

_WELCOME = """
  Polling Inbox is running.

  Console   {url}/
  API       {url}/docs
  API key   {key}
  New key   .venv/bin/inbox keys create {tenant} --scope all
"""
_NO_KEY = "(shown only at the first start)"
_FIRST_COMMANDS = """
  The key is not shown again. Send an event:

curl -sS {url}/events -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{"event_type": "order.created", "payload": {{"order": 1001}}}}'

  Poll it back:

curl -sS {url}/inbox -H 'Authorization: Bearer {key}'
"""


@click.command()
@click.option("--host", help="Address to listen on. Default: INBOX_HOST.")
@click.option("--port", type=WholeNumber(1, 65535), help="Port to listen on. Default: INBOX_PORT.")
@click.option("--workers", type=WholeNumber(1, 256), help="Worker processes. Default: INBOX_WORKERS.")
@click.option("--threads", type=WholeNumber(1, 1024), help="Threads per worker process. Default: INBOX_THREADS.")
def serve(**options: Any) -> None:
    """Run the service."""
    settings = read_environment(**options)
    configure_logs(settings.log_format)
    run_server(settings)


@click.command()
def quickstart() -> None:
    """Run the service with a tenant and a key to try it."""
    settings = read_environment()
    configure_logs(settings.log_format)
    with closing(open_store(settings)) as store:
        store.init()
    # Once the server listens, so that the printed commands work and a failed start does not use up the key.
    run_server(settings, when_ready=lambda: click.echo(_welcome(settings)))


def _welcome(settings: Settings) -> str:
    """Returns the text to print. At the first start, creates the tenant `demo` with a key."""
    key, text = _NO_KEY, _WELCOME
    with closing(open_store(settings)) as store:
        if store.tenants.get(_DEMO) is None:
            TenantService(store.tenants, store.now_ms).create(
                OPERATOR, _DEMO, status=TenantStatus.REGISTERED, organization_name="Demo"
            )
            service = KeyService(store.keys, store.tenants, store.now_ms)
            key = service.create(_DEMO, "quickstart", TENANT_SCOPES).key
            text += _FIRST_COMMANDS
    return text.format(url=f"http://{settings.address}", tenant=_DEMO, key=key)
