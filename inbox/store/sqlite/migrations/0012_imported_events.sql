-- Set on imported events: their place among the events of their millisecond, and their state when they were imported last.
-- While an event still has that state, this database has not changed it.
ALTER TABLE events ADD COLUMN imported_order TEXT;
ALTER TABLE events ADD COLUMN imported_state TEXT;
