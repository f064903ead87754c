"""From API key to principal, and rate limits."""
