"""Calendars of days."""
