"""Processes, probes, health and verification of the service."""
