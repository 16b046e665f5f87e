"""The other side of the API: a typed client, sync and async from one description, and a worker for pull queues."""
