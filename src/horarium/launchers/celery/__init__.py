"""Runs as tasks of Celery: published to a broker, done by whichever worker takes them."""
