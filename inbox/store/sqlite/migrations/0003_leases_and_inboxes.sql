-- A new table, with the payload last: SQLite reads a row from its beginning, so columns behind a large payload are slow.
--
-- An event has a row in the inbox `default` and one more, its copy, in each named inbox that receives it. The stored
-- status is the one that clients see, except for `held`: released, and undelivered once its delay has ended. `until_ms`
-- is the end of a lease or delay, `claim_id` the last claim that leased, delivered or released the event.
CREATE TABLE events_of_inboxes (
    seq             INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant_id       TEXT NOT NULL,
    inbox           TEXT NOT NULL DEFAULT 'default',
    event_id        TEXT NOT NULL,
    event_type      TEXT,
    timestamp_ms    INTEGER NOT NULL,
    expires_at_s    INTEGER NOT NULL,
    status          TEXT NOT NULL,
    deliveries      INTEGER NOT NULL DEFAULT 0,
    lost_leases     INTEGER NOT NULL DEFAULT 0,
    delivered_at_ms INTEGER,
    claim_id        TEXT,
    until_ms        INTEGER,
    fingerprint     BLOB,
    payload         TEXT NOT NULL
) STRICT;

INSERT INTO events_of_inboxes
    (seq, tenant_id, event_id, event_type, timestamp_ms, expires_at_s, status, deliveries, delivered_at_ms,
     fingerprint, payload)
SELECT seq, tenant_id, event_id, event_type, timestamp_ms, expires_at_s, status, deliveries, delivered_at_ms,
       fingerprint, payload
FROM events ORDER BY seq;

-- The numbers of erased events are still not reused.
DELETE FROM sqlite_sequence WHERE name = 'events_of_inboxes';
INSERT INTO sqlite_sequence (name, seq) SELECT 'events_of_inboxes', seq FROM sqlite_sequence WHERE name = 'events';

DROP TABLE events;
ALTER TABLE events_of_inboxes RENAME TO events;

-- Every index entry ends in seq, so each index has the order of the inbox. Timestamps never decrease along seq.
CREATE UNIQUE INDEX events_by_id ON events (tenant_id, event_id, inbox);
CREATE INDEX events_by_status ON events (tenant_id, inbox, status);
CREATE INDEX events_by_time ON events (tenant_id, inbox, timestamp_ms);
CREATE INDEX events_by_type ON events (tenant_id, inbox, event_type, timestamp_ms) WHERE event_type IS NOT NULL;
CREATE INDEX events_by_expiry ON events (expires_at_s);
CREATE INDEX events_by_end ON events (tenant_id, inbox, until_ms) WHERE until_ms IS NOT NULL;

-- event_types is a JSON array of patterns, or NULL for every event.
CREATE TABLE inboxes (
    tenant_id     TEXT NOT NULL,
    name          TEXT NOT NULL,
    event_types   TEXT,
    created_at_ms INTEGER NOT NULL,
    closing       INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, name)
) STRICT, WITHOUT ROWID;

-- Repeatable polls: the rows that each claimed, and the IDs of its claims, as JSON arrays.
CREATE TABLE attempts (
    tenant_id TEXT NOT NULL,
    inbox     TEXT NOT NULL,
    attempt   TEXT NOT NULL,
    at_ms     INTEGER NOT NULL,
    claim_ids TEXT NOT NULL,
    seqs      TEXT NOT NULL,
    PRIMARY KEY (tenant_id, inbox, attempt)
) STRICT, WITHOUT ROWID;

CREATE INDEX attempts_by_age ON attempts (at_ms);
