"""The schedules, the workflow and the two agents of `up --demo`."""
