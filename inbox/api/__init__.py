"""HTTP: Flask blueprints, one file per resource."""

from flask import Flask

from inbox.api import (
    admin,
    events,
    flask_app,
    history,
    inbox,
    inboxes,
    keys,
    pages,
    problems,
    request_bodies,
    service_info,
    stats,
)
from inbox.api.access_log import Answered, RequestTrail
from inbox.api.openapi import create_api
from inbox.api.responses import compress_answer
from inbox.api.services import Services, attach


def install(app: Flask, services: Services, answered: Answered) -> None:
    """Puts every route of the API into the app."""
    # `/events//batch` is not `/events/batch`: a redirect would let a proxy and this service disagree about the path.
    app.url_map.merge_slashes = False
    attach(app, services)
    app.wsgi_app = RequestTrail(app.wsgi_app, answered)  # type: ignore[method-assign]
    api = create_api(app)
    for resource in (events, inbox, history, inboxes, stats, keys, admin, service_info):
        api.register_blueprint(resource.blueprint)
    inbox.refuse_head(app)
    app.register_blueprint(pages.blueprint)
    app.before_request(flask_app.refuse_other_spellings)
    app.after_request(compress_answer)
    app.teardown_request(request_bodies.release_budget)
    problems.install(app)
