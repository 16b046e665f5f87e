"""Schedules: definitions, revisions, lifecycle, triggers and backfills."""
