-- Tenants that have disabled their inbox `default`.
CREATE TABLE disabled_default_inboxes (
    tenant_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
