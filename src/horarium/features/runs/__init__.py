"""Runs: lists, lifecycle, workers, reports and logs."""
