"""The console in a real browser: found by roles and names alone, as people and screen readers find it."""
