"""gunicorn for this service: an event loop reads requests and holds long polls, threads run the Flask app."""
