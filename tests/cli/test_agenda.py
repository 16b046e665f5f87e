"""What runs tomorrow, across schedules, on a terminal."""

from __future__ import annotations

from cli.served import Server


def test_tomorrow_is_told_with_reasons(server: Server) -> None:
    server.service.create(schedule_id="nightly", cron_expr="0 2 * * *", workflow_type="w")
    server.service.create(schedule_id="resting", cron_expr="0 3 * * *", workflow_type="w", paused=True)
    day = int(server.told("agenda", "-o", "jsonl").split('"at": "')[1][8:10]) + 1
    window = ("--from", f"2026-03-{day:02}T00:00:00Z", "--to", f"2026-03-{day + 1:02}T00:00:00Z")
    lines = [line.split() for line in server.told("agenda", *window).splitlines()]
    assert lines[1:] == [
        [f"2026-03-{day:02}T02:00:00Z", "nightly", "dispatch", "-", "predicted", "-"],
        [f"2026-03-{day:02}T03:00:00Z", "resting", "skip", "status_not_triggerable", "predicted", "-"],
    ]
    cut = server.ask("agenda", *window, "--limit", "1")
    assert (len(cut.out.splitlines()), "there is more" in cut.err) == (2, True)
    assert server.ask("agenda", "--from", "2030-01-02T00:00:00Z", "--to", "2030-01-01T00:00:00Z").code == 2
