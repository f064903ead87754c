-- How far the time lies ahead of the clock that counts from the start of the machine. All processes go by these rows: the
-- one with the greatest `from_ns`, by that clock, that is over. From then on the lead goes slowly from `lead_ns` to `goal_ns`.
CREATE TABLE clock (
    boot_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    lead_ns INTEGER NOT NULL,
    goal_ns INTEGER NOT NULL,
    PRIMARY KEY (boot_id, from_ns)
) STRICT, WITHOUT ROWID;
