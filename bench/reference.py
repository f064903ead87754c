"""What ours is measured against: a Flask view that does nothing, on the same gunicorn settings."""

from flask import Flask

app = Flask(__name__, static_folder=None)


@app.route("/", methods=["GET", "POST"])
def nothing() -> str:
    return "{}"
