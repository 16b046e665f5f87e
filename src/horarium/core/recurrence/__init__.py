"""Recurrence: cron expressions, intervals, time zones and specs."""
