"""Schedules: what was written, how far the engine has got, and what was decided."""
