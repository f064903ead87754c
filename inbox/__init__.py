"""Polling Inbox: producers send events with POST, consumers poll them in order."""

__version__ = "0.1.0"
