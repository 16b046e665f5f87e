"""Parts that all features use."""
