"""The audit log of administrative actions."""
