"""The eyes: what was recorded is told once to the log and once to the metrics."""
