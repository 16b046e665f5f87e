"""Import of Celery beat schedules."""
