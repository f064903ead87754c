"""What tests run on: how each engine is installed and started, and how a store is opened on it."""
