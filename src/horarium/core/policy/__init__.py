"""Policies: their names, checks and behaviour."""
