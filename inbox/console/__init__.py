"""The console: one static page that uses the public API only."""

from flask import Blueprint, Flask, Response

from inbox.content_policy import OWN_ONLY

blueprint = Blueprint("console", __name__, static_folder="static", static_url_path="/console")


def install(app: Flask) -> None:
    app.register_blueprint(blueprint)


@blueprint.get("/")
def index() -> Response:
    response = blueprint.send_static_file("index.html")
    response.headers["Content-Security-Policy"] = OWN_ONLY
    return response
