"""Where events, keys and tenants are kept: one interface, one package per engine."""
