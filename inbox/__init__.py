"""Polling Inbox: events in by POST, out by poll, in order, once."""
