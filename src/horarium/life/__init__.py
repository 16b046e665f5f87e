"""Public path of the outcomes that launchers return."""
