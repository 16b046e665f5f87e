"""What a function that does the work of a run knows and says about it, wherever it runs."""
