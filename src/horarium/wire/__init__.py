"""Typed values of requests and answers, shared by the server and its clients."""
