"""Agents, teams and assignments."""
