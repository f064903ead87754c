"""Polling Inbox: events in by POST, out by poll, in order, once."""

__version__ = "0.1.0"
