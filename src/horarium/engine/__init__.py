"""The heart: loops that decide what is due, hand it out, follow it and tidy up."""
