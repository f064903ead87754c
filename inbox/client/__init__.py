"""The Python client. It knows nothing of the service but its API."""

from inbox.client.client import CallFailed, Client, Event, Lease, NewEvent, Replayed, StoredEvent

__all__ = ["CallFailed", "Client", "Event", "Lease", "NewEvent", "Replayed", "StoredEvent"]
