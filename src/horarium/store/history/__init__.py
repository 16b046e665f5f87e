"""History: what was decided about schedules, one by one and as a feed of all."""
