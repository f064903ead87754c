"""The HTTP API: Flask blueprints, one file per resource, and what they share."""

from flask import Flask

from inbox.api import (
    admin,
    events,
    flask_app,
    history,
    inboxes,
    keys,
    openapi,
    pages,
    polling,
    problems,
    request_bodies,
    service_info,
    stats,
)
from inbox.api.access_log import AccessLog, OnResponse
from inbox.api.responses import compress_response
from inbox.api.services import Services, attach


def install(app: Flask, services: Services, on_response: OnResponse) -> None:
    """Adds every route of the API to the app."""
    # `/events//batch` is not `/events/batch`: a redirect would let a proxy and this service disagree about the path.
    app.url_map.merge_slashes = False
    attach(app, services)
    app.wsgi_app = AccessLog(app.wsgi_app, on_response)  # type: ignore[method-assign]
    for resource in (events, polling, history, inboxes, stats, keys, admin, service_info, pages):
        app.register_blueprint(resource.blueprint)
    polling.disable_head(app)
    openapi.install(app)
    app.before_request(flask_app.check_path)
    app.after_request(compress_response)
    app.teardown_request(request_bodies.release_budget)
    problems.install(app)
