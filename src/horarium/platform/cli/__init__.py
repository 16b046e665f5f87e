"""Command line: what the commands of all features use."""
