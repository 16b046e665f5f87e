"""What is asked in each transcript against a server. A pair is something that happens between two questions."""

from __future__ import annotations

from collections.abc import Callable

from horarium.testing import TestService

Step = str | tuple[str, Callable[[TestService], None]]

TWO_DAYS: Step = ("two days pass", lambda service: service.advance(days=2))
NIGHTLY = """schedule create nightly --cron "0 2 * * *" --tz Europe/Istanbul --workflow-type report"""

BACKFILL = "schedule backfill nightly --from 2026-02-01T00:00:00Z --to 2026-02-03T00:00:00Z"


def _fail_newest(service: TestService) -> None:
    service.settle()  # only what was handed out can fail
    service.fail(service.runs()[-1], "no space left", error_class="Disk")


A_FAILURE: Step = ("the run fails", _fail_newest)

STORIES: dict[str, list[Step]] = {
    "schedule-life": [
        NIGHTLY + """ --input '{"region": "eu"}' --label team=finance --note "for the board" """,
        "schedule list",
        "schedule describe nightly",
        'schedule update nightly --cron "30 2 * * *" --clear note',
        'schedule update nightly --cron "30 2 * * *"',
        'schedule pause nightly --reason "the database moves"',
        "schedule pause nightly",
        "schedule inspect nightly",
        "schedule resume nightly",
        TWO_DAYS,
        "schedule history nightly --limit 3",
        "schedule history nightly --after-sequence 3",
        "schedule delete nightly",
        "schedule describe nightly",
        "schedule history nightly --after-sequence 6",
        "schedule list",
    ],
    "schedule-kinds": [
        """schedule create calls --every PT1H+PT5M --url https://example.org/hook --method PUT --header X-Team=ops""",
        """schedule create once --at 2026-03-05T09:00:00Z --at 2026-03-06T09:00:00Z --command vacuum"""
        """ --name "Clean up" """,
        """schedule create hashed --cron "H 3 * * *" --cron @hourly --workflow-type w --queue slow --max-runs 5"""
        """ --start-at 2026-03-02T00:00:00Z --end-at 2026-04-01T00:00:00Z --overlap-policy buffer_one --paused""",
        "schedule describe calls",
        "schedule describe once",
        "schedule describe hashed",
        "schedule list --status paused -o jsonl",
        "schedule list --limit 1 -o table --text once",
    ],
    "schedule-formats": [
        NIGHTLY + " -o json",
        "schedule upsert nightly --cron '0 2 * * *' --tz Europe/Istanbul --workflow-type report -o yaml",
        "schedule list -o json",
        "schedule list -o yaml",
        "schedule describe nightly -o json",
        "schedule history nightly -o json",
        "schedule history nightly -o jsonl",
        "schedule preview nightly -n 2 -o jsonl",
        "schedule explain nightly -o json",
        "schedule pause nightly -o jsonl",
    ],
    "schedule-fires": [
        NIGHTLY,
        "schedule trigger nightly --reason 'asked for by finance' --key one",
        "schedule trigger nightly --reason 'asked for by finance' --key one -o json",
        "schedule trigger nightly --key one",
        "schedule trigger nightly",
        'schedule trigger nightly --overlap-policy allow_all --input \'{"region": "us"}\' -o json',
        "schedule pause nightly",
        "schedule trigger nightly -o json",
        "schedule trigger nightly --even-if-paused --overlap-policy buffer_all",
        "schedule backfill nightly --from 2026-02-01T00:00:00Z --to 2026-02-04T00:00:00Z --dry-run",
        f"{BACKFILL} --overlap-policy allow_all",
        f"{BACKFILL} --overlap-policy allow_all -o jsonl",
        "schedule backfill nightly --from 2026-02-01T00:00:00Z --to 2026-02-01T01:00:00Z",
        "schedule backfill nightly --from 2026-02-04T00:00:00Z --to 2026-02-01T00:00:00Z",
    ],
    "schedule-guards": [
        """schedule create mornings --cron "0 9 * * *" --tz America/New_York --workflow-type report""",
        "schedule calendar attach mornings us-federal-holidays-2026 holidays:TR",
        "schedule calendar attach mornings no-such-calendar",
        "schedule calendar detach mornings holidays:TR",
        """schedule condition set mornings '{"/last_24h_stats/failed": {"lt": 3}}'""",
        """schedule condition set mornings '{"/a": {"like": 3}}'""",
        """schedule condition set mornings '[]'""",
        """schedule rotation set mornings '[{"region": "eu"}, {"region": "us"}]'""",
        "schedule describe mornings",
        "schedule preview mornings --from 2026-05-23T00:00:00Z -n 4",
        "schedule explain mornings --at 2026-05-25T13:00:00Z",
        "schedule explain mornings --at 2026-05-25T13:30:00Z",
        "schedule condition clear mornings",
        "schedule rotation clear mornings",
        "schedule calendar detach mornings --all",
        "schedule calendar detach mornings",
        "schedule health mornings",
        "schedule health -o json",
    ],
    "runs": [
        NIGHTLY + " --overlap-policy allow_all",
        TWO_DAYS,
        "run list",
        "schedule trigger nightly",
        A_FAILURE,
        "run list --state failed",
        "run show ID000000000000000000000003",
        "run events ID000000000000000000000003",
        "run cancel ID000000000000000000000003",
        "schedule trigger nightly --input '{\"day\": 1}'",
        "run cancel ID000000000000000000000005",
        "schedule trigger nightly",
        "run terminate ID000000000000000000000006 -o json",
        "run show ID000000000000000000000006 -o yaml",
        "run list --limit 2",
        "run list --schedule nightly --origin manual -o jsonl",
        "run list --schedule nightly --skips --state succeeded",
        "run list --skips",
        "run list --schedule nightly --queue q",
        "run show nothing",
    ],
    "calendars": [
        "calendar list",
        "calendar create company-days --date 2026-12-24 --date 2026-12-31 --tz Europe/Istanbul",
        "calendar create company-days --date 2026-12-24",
        "calendar show company-days",
        "calendar import company-days days.txt",
        "calendar import company-days days.ics",
        "calendar import shutdown days.ics --kind only_dates --tz Europe/Berlin -o json",
        "calendar import company-days days.txt --replace",
        "calendar import us-federal-holidays-2026 days.txt",
        "calendar show holidays:TR --year 2027",
        "calendar clone us-federal-holidays-2026 ours",
        NIGHTLY + " --calendar ours",
        "calendar delete ours",
        "calendar delete shutdown",
        "calendar list -o jsonl",
        "calendar show shutdown",
    ],
    "tokens": [
        "token create deploys --role operator --subject ci@example.org",
        "token create short --role viewer --expires-at 2026-04-01T00:00:00Z",
        "token list",
        "token revoke ID000000000000000000000001",
        "token list -o yaml",
        "token create bad --role king",
        "token revoke ID000000000000000000000009",
    ],
    "namespaces": [
        'namespace create staging --description "pre-production"',
        "namespace create staging",
        NIGHTLY + " --namespace staging",
        "schedule list --namespace staging",
        "schedule list",
        "namespace list",
        "namespace list -o json",
        "schedule list --namespace production",
    ],
    "bundles": [
        "apply -f bundle.json --bundle ours --dry-run",
        "apply -f bundle.json --bundle ours",
        "apply -f bundle.json --bundle ours",
        "schedule pause hourly",
        NIGHTLY,
        "apply -f changed.json --bundle ours --dry-run --prune -o jsonl",
        "apply -f changed.json --bundle ours --prune",
        "schedule list",
        "export",
        "export --source template -o yaml",
    ],
}
FILES: dict[str, str] = {
    "days.txt": "# when we are closed\n2026-12-24 Christmas Eve\n2026-12-25\n\n2027-01-01 # New Year\n",
    "days.ics": """\
BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
UID:1@example.org
DTSTART;VALUE=DATE:20261224
DTEND;VALUE=DATE:20261227
SUMMARY:Closed\\, all of us\\, and this line is so long that it
  is folded
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20270101
END:VEVENT
END:VCALENDAR
""",
    "bundle.json": """\
{
  "calendars": [{"name": "closed", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-12-25"]}],
  "schedules": [
    {"schedule_id": "hourly", "spec": {"intervals": [{"every": "PT1H"}]}, "action": {"workflow_type": "sync"}},
    {"schedule_id": "daily", "cron_expr": "0 6 * * *", "workflow_type": "digest", "calendars": ["closed"]},
    {"schedule_id": "old", "cron_expr": "0 7 * * *", "workflow_type": "digest"}
  ]
}
""",
    "changed.json": """\
{
  "calendars": [{"name": "closed", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-12-25", "2026-12-26"]}],
  "schedules": [
    {"schedule_id": "hourly", "spec": {"intervals": [{"every": "PT2H"}]}, "action": {"workflow_type": "sync"}},
    {"schedule_id": "daily", "cron_expr": "0 6 * * 1-5", "workflow_type": "digest", "calendars": ["closed"]},
    {"schedule_id": "new", "cron_expr": "* * * * * *", "workflow_type": "pulse"},
    {"schedule_id": "nightly", "cron_expr": "0 3 * * *", "workflow_type": "report"}
  ]
}
""",
}
