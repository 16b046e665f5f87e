"""Typed clients of the API, sync and async from one description, and a worker for pull queues."""
