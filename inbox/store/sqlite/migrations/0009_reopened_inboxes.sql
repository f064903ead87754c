-- One row for each release or replay that has made delivered, dead or leased events of an inbox undelivered again. Watches
-- read the rows behind the last number they know. The latest rows always stay, so no number is used twice.
CREATE TABLE reopened_inboxes (
    number    INTEGER PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    inbox     TEXT NOT NULL
) STRICT;
