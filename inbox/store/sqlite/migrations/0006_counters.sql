-- Counts of what happened to events, by hour and by day. The type is '' for events without one, and '*' for all types
-- beyond the first 50.
CREATE TABLE counters (
    tenant_id  TEXT NOT NULL,
    inbox      TEXT NOT NULL,
    span       TEXT NOT NULL,
    start_ms   INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    received   INTEGER NOT NULL DEFAULT 0,
    delivered  INTEGER NOT NULL DEFAULT 0,
    leased     INTEGER NOT NULL DEFAULT 0,
    dead       INTEGER NOT NULL DEFAULT 0,
    replayed   INTEGER NOT NULL DEFAULT 0,
    bytes      INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, inbox, span, start_ms, event_type)
) STRICT, WITHOUT ROWID;

-- Initial counts, from the stored events: when each was stored, and when it was last delivered.
INSERT INTO counters (tenant_id, inbox, span, start_ms, event_type, received, delivered, bytes)
WITH moves (tenant_id, inbox, event_type, at_ms, received, delivered, bytes) AS (
    SELECT tenant_id, inbox, coalesce(event_type, ''), timestamp_ms, 1, 0, octet_length(payload) FROM events
    UNION ALL
    SELECT tenant_id, inbox, coalesce(event_type, ''), delivered_at_ms, 0, 1, 0 FROM events WHERE status = 'delivered'
),
spans (span, ms) AS (VALUES ('hour', 3600000), ('day', 86400000)),
sums AS (
    SELECT tenant_id, inbox, span, at_ms / ms * ms AS start_ms, event_type,
           sum(received) AS received, sum(delivered) AS delivered, sum(bytes) AS bytes
    FROM moves, spans GROUP BY 1, 2, 3, 4, 5
),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY tenant_id, inbox, span, start_ms ORDER BY received DESC) AS rank FROM sums
)
SELECT tenant_id, inbox, span, start_ms, CASE WHEN rank > 50 THEN '*' ELSE event_type END,
       sum(received), sum(delivered), sum(bytes)
FROM ranked GROUP BY 1, 2, 3, 4, 5;

-- How many events of an inbox are undelivered. Triggers could count them, but with a trigger SQLite copies every page that
-- a statement changes, which triples the cost of an insert.
CREATE TABLE backlog (
    tenant_id   TEXT NOT NULL,
    inbox       TEXT NOT NULL,
    undelivered INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, inbox)
) STRICT, WITHOUT ROWID;

INSERT INTO backlog (tenant_id, inbox, undelivered)
SELECT tenant_id, inbox, count(*) FROM events WHERE status = 'undelivered' GROUP BY tenant_id, inbox;
