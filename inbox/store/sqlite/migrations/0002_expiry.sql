-- Existing events get the default retention of that release: 30 days.
ALTER TABLE events ADD COLUMN expires_at_s INTEGER NOT NULL DEFAULT 0;

UPDATE events SET expires_at_s = timestamp_ms / 1000 + 2592000;
