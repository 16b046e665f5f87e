"""Documents: the values that a schedule or a workflow is made of, and their readers and writers."""
