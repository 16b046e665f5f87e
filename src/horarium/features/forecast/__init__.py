"""Previews, explanations and the agenda."""
