"""Secrets of a namespace."""
