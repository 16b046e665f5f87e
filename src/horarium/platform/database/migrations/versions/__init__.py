"""One file for each revision, oldest first; none is edited after its release."""
