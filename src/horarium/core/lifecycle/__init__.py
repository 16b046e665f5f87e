"""Lifecycle of a run: outcomes, events and the changes that follow."""
