"""The workspace paths: schedules of an agent."""
