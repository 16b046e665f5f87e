"""Interfaces of other programs, kept for their clients."""
