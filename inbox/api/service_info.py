"""/me, /healthz, /readyz, /metrics: who is calling, and how the service is."""

from typing import Any

from flask import Response

from inbox.api.auth import principal, requires
from inbox.api.openapi import Blueprint
from inbox.api.responses import json_answer
from inbox.api.schemas.events import Caller, Health
from inbox.api.schemas.fields import NoParameters
from inbox.api.services import services

blueprint = Blueprint("service", __name__, description="Who is calling, and how the service is.")

_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_EXAMPLE = """# HELP inbox_waiting_polls Polls held back
# TYPE inbox_waiting_polls gauge
inbox_waiting_polls 3.0
"""


@blueprint.route("/me", methods=["GET"])
@requires()
@blueprint.arguments(NoParameters(), location="query")
@blueprint.response(200, Caller)
@blueprint.refusals(401, 403, 422, 503)
def me(_parameters: dict[str, Any]) -> Response:
    """Who this key is"""
    caller = principal()
    return json_answer(
        {
            "tenant_id": caller.tenant_id,
            "tenant_name": caller.tenant_name,
            "key_id": caller.key_id,
            "scopes": sorted(caller.scopes),
        }
    )


@blueprint.route("/healthz", methods=["GET"])
@blueprint.response(200, Health)
def healthz() -> Response:
    """Whether the process is alive"""
    return json_answer({"status": "ok"})


@blueprint.route("/readyz", methods=["GET"])
@blueprint.response(200, Health)
@blueprint.refusals(503)
def readyz() -> Response:
    """Whether the store answers and accepts writes

    A process checks at most once a second and repeats its last answer in between. On SQLite the answer is also 503
    after a write has failed because the disk is full, until there is room for it.
    """
    services().check_store()
    return json_answer({"status": "ok"})


@blueprint.route("/metrics", methods=["GET"])
@blueprint.doc(responses={200: {"content": {"text/plain": {"schema": {"type": "string"}, "example": _EXAMPLE}}}})
@blueprint.response(200, description="In Prometheus' text format.")
@blueprint.refusals()
def metrics() -> Response:
    """What the service has counted, for Prometheus"""
    return Response(services().exposition(), content_type=_TEXT_FORMAT)
