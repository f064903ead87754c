-- With the timestamp: an event that is imported late gets the next seq, but not the last place in its inbox.
DROP INDEX events_by_status;
CREATE INDEX events_by_status ON events (tenant_id, inbox, status, timestamp_ms);
