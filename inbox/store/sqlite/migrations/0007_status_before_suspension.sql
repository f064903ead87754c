-- NULL for a tenant that is not suspended, and for one that an earlier release suspended.
ALTER TABLE tenants ADD COLUMN status_before_suspension TEXT;
