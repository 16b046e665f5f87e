"""The context and the log of a run, for the function that executes it."""
