"""/me, /healthz, /readyz, /metrics: the current API key, and the state of the service."""

from flask import Blueprint, Response

from inbox.api.authorization import principal
from inbox.api.endpoint import ANY_KEY, PUBLIC, Endpoint, Success
from inbox.api.examples import named
from inbox.api.problem_types import BAD_REQUEST, UNAVAILABLE
from inbox.api.responses import json_response
from inbox.api.schemas.service_info import Caller, Health
from inbox.api.services import services

blueprint = Blueprint("service", __name__)

_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_EXAMPLE = """# HELP inbox_waiting_polls Waiting polls
# TYPE inbox_waiting_polls gauge
inbox_waiting_polls 3.0
"""
_METRICS = Success(
    {"type": "string"}, "Prometheus text format.", examples=named(gauge=_EXAMPLE), media_type="text/plain"
)


@blueprint.get("/me")
@Endpoint(scopes=ANY_KEY, returns={200: Success(Caller())})
def me() -> Response:
    """Show the tenant and the scopes of this API key"""
    current = principal()
    return json_response(
        {
            "tenant_id": current.tenant_id,
            "tenant_name": current.tenant_name,
            "key_id": current.key_id,
            "scopes": sorted(current.scopes),
        }
    )


@blueprint.get("/healthz")
@Endpoint(scopes=PUBLIC, returns={200: Success(Health())})
def healthz() -> Response:
    """Check that the process is alive"""
    return json_response({"status": "ok"})


@blueprint.get("/readyz")
@Endpoint(scopes=PUBLIC, returns={200: Success(Health())}, problems=(BAD_REQUEST, UNAVAILABLE))
def readyz() -> Response:
    """Check that the store responds and accepts writes

    A process checks at most once per second and repeats the last result in between. On SQLite the response is also 503
    after a write has failed because the disk is full, until there is enough space for that write.
    """
    services().check_store()
    return json_response({"status": "ok"})


@blueprint.get("/metrics")
@Endpoint(scopes=PUBLIC, returns={200: _METRICS}, problems=(BAD_REQUEST,))
def metrics() -> Response:
    """Get metrics for Prometheus"""
    return Response(services().exposition(), content_type=_TEXT_FORMAT)
