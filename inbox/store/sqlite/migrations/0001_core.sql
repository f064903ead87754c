CREATE TABLE tenants (
    tenant_id     TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    email         TEXT,
    status        TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    key_hash      TEXT PRIMARY KEY,
    key_id        TEXT NOT NULL UNIQUE,
    tenant_id     TEXT NOT NULL REFERENCES tenants (tenant_id),
    name          TEXT NOT NULL,
    scopes        TEXT NOT NULL,
    status        TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX api_keys_by_tenant ON api_keys (tenant_id, created_at_ms);

-- seq is the order of the commits, and so the order of the inbox. AUTOINCREMENT never reuses the number of an erased
-- event.
CREATE TABLE events (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id       TEXT NOT NULL,
    event_id        TEXT NOT NULL,
    event_type      TEXT,
    timestamp_ms    INTEGER NOT NULL,
    status          TEXT NOT NULL,
    deliveries      INTEGER NOT NULL DEFAULT 0,
    delivered_at_ms INTEGER,
    fingerprint     BLOB,
    payload         TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX events_by_id ON events (tenant_id, event_id);

-- Every index entry ends in seq (the rowid), so a tenant's undelivered events are in order here.
CREATE INDEX events_by_status ON events (tenant_id, status);
