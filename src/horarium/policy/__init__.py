"""A policy is a choice among outcomes: one file each, with its names, its checks and its behaviour.

overlap    what happens to an occurrence while earlier runs are still busy
catchup    what happens to occurrences that the engine was not there for
rotation   which inputs a run gets
retry      whether and when a failure is tried again
approval   what may not start or go on without a yes
deciding   who may give it, and how many must
failure    what a failed step does to the rest of its workflow
limits     what may be spent in a day, and what one run may use
quotas     what one namespace may have and start
retention  for how long a namespace keeps its runs and its history
queue      the `queue_policy` object, read as the fields above
names      how names and numbers are read, and the error that says which field is wrong
"""
