"""Approval requests, their decisions, and standing approvals."""
