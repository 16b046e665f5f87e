"""Subscriptions to the feed, delivered by HTTP."""
