"""Features, one folder each."""
