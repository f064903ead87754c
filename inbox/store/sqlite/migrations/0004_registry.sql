-- Replaces both tables: a tenant's name may be missing now, and a table cannot be dropped while another refers to it. So
-- the keys are dropped before the tenants. Renaming a table also renames it in references.
--
-- `email_key` is the form in which email addresses are compared. Earlier releases let tenants share an address: it
-- belongs to the first of them, and the others have it in `email` only.
CREATE TABLE registry (
    tenant_id         TEXT PRIMARY KEY,
    organization_name TEXT,
    email             TEXT,
    email_key         TEXT UNIQUE,
    destination_email TEXT,
    rate_limit        INTEGER,
    status            TEXT NOT NULL,
    active            INTEGER NOT NULL,
    created_at_ms     INTEGER NOT NULL,
    updated_at_ms     INTEGER NOT NULL,
    updated_by        TEXT NOT NULL,
    version           INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO registry
    (tenant_id, organization_name, email, email_key, status, active, created_at_ms, updated_at_ms, updated_by, version)
SELECT tenant_id,
       nullif(nullif(name, tenant_id), ''),
       nullif(email, ''),
       CASE WHEN row_number() OVER (PARTITION BY email_key(email) ORDER BY created_at_ms, tenant_id) = 1
            THEN email_key(nullif(email, '')) END,
       CASE status WHEN 'active' THEN 'REGISTERED' ELSE 'SUSPENDED' END,
       1, created_at_ms, created_at_ms, 'migration', 1
FROM tenants;

CREATE TABLE keys_of_registry (
    key_hash        TEXT PRIMARY KEY,
    key_id          TEXT NOT NULL UNIQUE,
    tenant_id       TEXT NOT NULL REFERENCES registry (tenant_id),
    name            TEXT NOT NULL,
    hint            TEXT,
    scopes          TEXT NOT NULL,
    status          TEXT NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    expires_at_ms   INTEGER,
    lifetime_ms     INTEGER,
    last_used_at_ms INTEGER
) STRICT, WITHOUT ROWID;

INSERT INTO keys_of_registry
    (key_hash, key_id, tenant_id, name, scopes, status, created_at_ms, expires_at_ms, lifetime_ms)
SELECT key_hash, key_id, tenant_id, name, scopes, status, created_at_ms, expires_at_ms, expires_at_ms - created_at_ms
FROM api_keys;

DROP TABLE api_keys;
DROP TABLE tenants;
ALTER TABLE registry RENAME TO tenants;
ALTER TABLE keys_of_registry RENAME TO api_keys;

CREATE INDEX api_keys_by_tenant ON api_keys (tenant_id, created_at_ms);
CREATE INDEX tenants_by_age ON tenants (created_at_ms, tenant_id);
CREATE INDEX tenants_by_status ON tenants (status, created_at_ms, tenant_id);

-- changes is a JSON object: by a member's name, its values before and after.
CREATE TABLE tenant_audit (
    tenant_id TEXT NOT NULL,
    number    INTEGER NOT NULL,
    at_ms     INTEGER NOT NULL,
    by        TEXT NOT NULL,
    action    TEXT NOT NULL,
    changes   TEXT NOT NULL,
    forced    INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, number)
) STRICT, WITHOUT ROWID;

-- Every version has an entry. What changed in these versions is unknown.
INSERT INTO tenant_audit (tenant_id, number, at_ms, by, action, changes, forced)
SELECT tenant_id, version, created_at_ms, updated_by, 'created', '{}', 0 FROM tenants;
