"""The desk behind every door: what can be asked of the service, each operation once."""
