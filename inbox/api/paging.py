"""How an answer says where the next page is."""

from urllib.parse import urlencode

from flask import request


def next_page(parameter: str, value: str | None) -> dict[str, str]:
    """The header for the same call with that parameter; none where there is no next page."""
    if value is None:
        return {}
    # A path and no more, as in Location: behind a proxy nobody here knows the host.
    query = urlencode(request.args.to_dict() | {parameter: value})
    return {"Link": f'<{request.path}?{query}>; rel="next"'}
