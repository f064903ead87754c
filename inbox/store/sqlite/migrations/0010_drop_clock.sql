-- Every process has its own clock now, and the processes of a service share theirs in memory.
DROP TABLE clock;
