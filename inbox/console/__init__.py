"""The console: one static page that uses the public API only."""

from flask import Blueprint, Flask, Response

blueprint = Blueprint("console", __name__, static_folder="static", static_url_path="/console")

_OWN_ONLY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"


def install(app: Flask) -> None:
    app.register_blueprint(blueprint)


@blueprint.get("/")
def index() -> Response:
    response = blueprint.send_static_file("index.html")
    response.headers["Content-Security-Policy"] = _OWN_ONLY
    return response
