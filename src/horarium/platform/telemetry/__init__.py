"""Telemetry: each recorded event goes once to the log and once to the metrics."""
