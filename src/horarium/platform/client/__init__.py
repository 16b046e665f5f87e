"""Client: what the calls of all features use."""
