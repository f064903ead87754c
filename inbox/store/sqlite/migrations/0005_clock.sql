-- How far the service's time is ahead of the machine's boot clock. All processes use the row with the greatest `from_ns`
-- that the boot clock has reached. From then on, the lead changes slowly from `lead_ns` to `goal_ns`.
CREATE TABLE clock (
    boot_id TEXT NOT NULL,
    from_ns INTEGER NOT NULL,
    lead_ns INTEGER NOT NULL,
    goal_ns INTEGER NOT NULL,
    PRIMARY KEY (boot_id, from_ns)
) STRICT, WITHOUT ROWID;
