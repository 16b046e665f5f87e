"""Launchers: each gives a run to one kind of target and says in a typed outcome what became of it."""
