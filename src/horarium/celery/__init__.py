"""What a Celery worker adds, so that the service hears what became of the runs it was given.

    from horarium.celery import report_to

    app = Celery("proj", broker="redis://…")
    report_to("https://horarium.example", app=app)

That is all: the worker's signals are listened to, what they say is written to a file, and sent from there.
"""

from __future__ import annotations

from horarium.celery.install import SkipEnded as SkipEnded
from horarium.celery.install import report_to as report_to
