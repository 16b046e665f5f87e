"""What the features look like at work: the schedules, the workflow and the two agents of `up --demo`."""
