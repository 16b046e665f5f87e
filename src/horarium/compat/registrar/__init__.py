"""The registrar paths of the plain cron scheduler."""
