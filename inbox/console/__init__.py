"""The console: one static page that uses the public API only."""

from flask import Blueprint, Response

from inbox.api.pages import OWN_ONLY

blueprint = Blueprint("console", __name__, static_folder="static", static_url_path="/console")

# Unlike the API's pages, the console uses no `data:` images.
_POLICY = OWN_ONLY.replace("img-src 'self' data:", "img-src 'self'")


@blueprint.get("/")
def index() -> Response:
    return blueprint.send_static_file("index.html")


@blueprint.after_request
def add_security_headers(response: Response) -> Response:
    # Set on every file, because index.html is also served under /console/.
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["Referrer-Policy"] = "no-referrer"
    return response
