"""Decisions about occurrences, and forecasts of them."""
