"""Use cases, one file per resource."""
