"""The HTTP API: each route reads a request, calls one operation and writes its answer."""
