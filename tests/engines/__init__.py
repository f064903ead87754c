"""The engines behind the tests: how each is started, and how a store is opened on it."""
