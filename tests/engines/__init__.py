"""Engines that tests run on: installing them, starting them, and opening a store on them."""
