"""Workflows: stored versions, triggers and starts."""
