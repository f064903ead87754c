"""Resolves API keys to principals. A Lambda ships this package alone, so it imports neither Flask nor `inbox`."""
