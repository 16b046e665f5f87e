"""Namespaces, tokens, sessions and quotas."""
