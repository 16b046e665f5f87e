"""Public paths of the fields and kinds that launchers declare."""
