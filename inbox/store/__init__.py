"""Where events, keys and tenants are kept: one port, one package per engine."""
