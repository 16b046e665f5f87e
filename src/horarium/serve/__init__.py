"""The composition root: settings become a database, launchers, an engine and an API, and these a process.

Nothing is global: two services can live in one process, and each test makes its own.
"""
