-- Tenants that have turned their inbox `default` off.
CREATE TABLE disabled_default_inboxes (
    tenant_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
