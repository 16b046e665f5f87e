"""What a Celery worker adds, so that the service hears what became of the runs it was given."""
