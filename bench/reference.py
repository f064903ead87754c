"""The reference: a Flask view that does nothing, with the same gunicorn settings."""

from tempfile import TemporaryDirectory

from flask import Flask

from inbox.api.services import attach, services_of
from inbox.app import Shared, create_app
from inbox.settings import Settings
from inbox.store.factory import open_store

app = Flask(__name__, static_folder=None)
# Only our worker uses the services of the app, for long polls, limits and counters.
_folder = TemporaryDirectory(prefix="inbox-bench-")
_settings = Settings(store=f"sqlite:///{_folder.name}/inbox.db")
attach(app, services_of(create_app(_settings, open_store(_settings), Shared())))


@app.route("/", methods=["GET", "POST"])
def return_nothing() -> str:
    return "{}"
