"""Reports about runs from a Celery worker to the service.

    from horarium.celery import report_to

    app = Celery("proj", broker="redis://…")
    report_to("https://horarium.example", app=app)

`report_to` connects to the worker's signals. Each report is written to a file and sent from there.
"""

from __future__ import annotations

from horarium.celery.install import SkipEnded as SkipEnded
from horarium.celery.install import report_to as report_to
