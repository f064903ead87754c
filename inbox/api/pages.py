"""/docs, /problems: HTML pages with the API reference and one page per problem."""

from flask import Blueprint, Response, make_response, render_template

from inbox.api.problem_types import PROBLEMS
from inbox.errors import NotFound

blueprint = Blueprint("pages", __name__, static_folder="static", template_folder="templates")

# A page may load the service's own files only, and no other site may frame it.
OWN_ONLY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Swagger UI sets style attributes from its scripts.
_SWAGGER = OWN_ONLY.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'")


@blueprint.get("/docs")
def docs() -> Response:
    return _page(render_template("docs.html"), _SWAGGER)


@blueprint.get("/problems")
def all_problems() -> Response:
    return _page(render_template("problems.html", problems=sorted(PROBLEMS.values(), key=lambda each: each.status)))


@blueprint.get("/problems/<slug>")
def one_problem(slug: str) -> Response:
    if slug not in PROBLEMS:
        raise NotFound("problem")
    return _page(render_template("problem.html", problem=PROBLEMS[slug]))


def _page(html: str, policy: str = OWN_ONLY) -> Response:
    response = make_response(html)
    response.headers["Content-Security-Policy"] = policy
    return response
