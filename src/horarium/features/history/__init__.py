"""The history of a schedule, and the feed of all events."""
