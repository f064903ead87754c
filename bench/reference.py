"""What ours is measured against: a Flask view that does nothing, on the same gunicorn settings."""

from flask import Flask

from inbox.worker import InboxWorker

app = Flask(__name__, static_folder=None)


@app.route("/", methods=["GET", "POST"])
def nothing() -> str:
    return "{}"


class OurWorker(InboxWorker):
    """For the empty view, which has no waits to end."""

    def _end_waits(self) -> None:
        pass
