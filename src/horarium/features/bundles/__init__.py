"""Bundles of documents that are applied together."""
