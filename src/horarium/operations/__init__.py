"""What can be asked of the service, whichever door it came through: each operation once."""
