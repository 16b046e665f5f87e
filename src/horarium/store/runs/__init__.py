"""Runs: how they are born, handed out, changed, ended and read."""
