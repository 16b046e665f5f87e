"""What has run, what runs and what waits: the list of runs, and the page of one with all that can be done with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from playwright.sync_api import Page, expect
from ui.conftest import Fresh, OpenPage
from ui.days import RARELY
from ui.fleet import SECOND_TENANT
from ui.looking import DIALOG, PANEL, assert_accessible, settled
from ui.serving import Served, until
from ui.watching import Watch

PULL = {"kind": "workflow", "workflow_type": "report", "queue": "nobody-takes-from-it"}


def write(fresh: Fresh, schedule_id: str = "report", **fields: Any) -> None:
    """One that fires only when it is told to."""
    document = {"schedule_id": schedule_id, "cron_expressions": [RARELY], "action": PULL, **fields}
    fresh.send("POST", "/api/schedules", {"overlap_policy": "allow_all", "max_concurrency": 100, **document})


def fire(fresh: Fresh, schedule_id: str = "report", times: int = 1) -> list[str]:
    """The ids of the runs."""
    return [fresh.send("POST", f"/api/schedules/{schedule_id}/trigger", {})["run_id"] for _ in range(times)]


def claimed(fresh: Fresh) -> int:
    """The epoch of the lease, once the run has come to its queue."""
    runs = until(lambda: fresh.send("POST", f"/api/queues/{PULL['queue']}/claim", {"worker": "w"})["runs"])
    epoch: int = runs[0]["lease_epoch"]
    return epoch


@contextmanager
def renewed(fresh: Fresh, run_id: str, epoch: int) -> Iterator[None]:
    """As a worker does beside its work: a browser on a busy machine may need longer than a lease."""
    done = Event()

    def renew() -> None:
        while not done.wait(2):
            fresh.send("POST", f"/api/runs/{run_id}/heartbeat", {"lease_epoch": epoch})

    beside = Thread(target=renew)
    beside.start()
    try:
        yield
    finally:
        done.set()
        beside.join()


def alone(open_page: OpenPage, fresh: Fresh, path: str, role: str = "admin", **more: Any) -> Page:
    page = open_page(path, token=fresh.tokens[role], **more)
    settled(page)
    return page


# ── the list ─────────────────────────────────────────────────────────────────────────────────────────


def test_runs_are_filtered_by_the_address_and_opened_by_keys(open_page: OpenPage) -> None:
    page = open_page("/runs?state=unsuccessful", zone="Asia/Kathmandu")
    rows = page.locator("tr[data-row]")
    # Others may have failed since: the fleet goes on while the tests run, and nobody is where it calls.
    bad = page.locator("tr[data-row]", has_text="invoice-export").first
    expect(bad).to_contain_text("Istanbul +03:00")
    expect(bad).to_contain_text(re.compile(r"Kath?mandu \+05:45"))
    expect(page.get_by_label("State")).to_have_value("unsuccessful")

    page.get_by_label("State").select_option("succeeded")
    page.get_by_label("Schedule", exact=True).fill("stock-check")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"schedule=stock-check"))
    expect(rows.first).to_contain_text("stock-check")
    expect(page.locator("tr[data-row]", has_text="invoice-export")).to_have_count(0)
    page.get_by_label("Queue").fill("nothing-is-there")
    page.get_by_role("button", name="Apply filters").click()
    expect(page.get_by_role("heading", name="No matching runs")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    expect(rows.first).to_be_visible()

    page.locator("h1").click()  # out of the filters, where j is a letter
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/runs/*")
    expect(page.get_by_role("heading", name="Details")).to_be_visible()


def test_what_comes_in_does_not_move_what_is_read(open_page: OpenPage, fresh: Fresh) -> None:
    write(fresh)
    fire(fresh, times=30)
    page = alone(open_page, fresh, "/runs")
    rows = page.locator("tr[data-row]")
    expect(rows.first).to_be_visible()
    fire(fresh)
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", "32")  # at the top they just come
    page.mouse.move(600, 500)
    page.mouse.wheel(0, 900)
    page.wait_for_function("() => window.scrollY > 600")
    newest = fire(fresh)[0]
    fresh_ones = page.get_by_role("button", name="↑ 1 new", exact=True)
    expect(fresh_ones).to_be_visible()
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", "32")
    fresh_ones.click()
    expect(rows.first.get_by_role("link").first).to_have_attribute("href", re.compile(newest))


def test_many_are_stopped_and_shown_first(open_page: OpenPage, fresh: Fresh) -> None:
    write(fresh)
    ids = fire(fresh, times=3)
    page = alone(open_page, fresh, "/runs?state=open&schedule=report")
    for run_id in ids[:2]:
        page.get_by_label(f"Select run {run_id}").check()
    page.get_by_role("button", name="Stop runs").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 runs will be stopped")
    assert_accessible(page, inside=DIALOG)
    assert [fresh.send("GET", f"/api/runs/{each}")["finished_at"] for each in ids] == [None] * 3, "only looked at"
    dialog.get_by_label("Action").select_option("terminate")
    dialog.get_by_role("button", name="Terminate 2 runs").click()
    expect(dialog).to_contain_text("2 terminated")
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("tr[data-row]")).to_have_count(1)

    until(lambda: fresh.send("GET", f"/api/runs/{ids[2]}")["state"] == "queued")
    page.get_by_role("button", name="Stop all open runs of this schedule").click()
    dialog.get_by_role("button", name="Cancel 1 run").click()
    expect(dialog).to_contain_text("1 cancel requested")  # a worker may have it
    assert fresh.send("GET", f"/api/runs/{ids[2]}")["stop_requested_at"]


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_stopped_and_run_again_with_other_inputs(open_page: OpenPage, fresh: Fresh) -> None:
    write(fresh, action={**PULL, "input": {"part": "a"}}, overlap_policy="skip", max_concurrency=None)
    (first,) = fire(fresh)
    page = alone(open_page, fresh, f"/runs/{first}")
    main, dialog = page.get_by_role("main"), page.get_by_role("dialog")
    expect(main).to_contain_text("Waiting in queue nobody-takes-from-it")
    page.get_by_role("button", name="Cancel run").click()
    dialog.get_by_role("button", name="Cancel run").click()
    expect(main).to_contain_text("Cancelled")

    busy = fire(fresh)[0]
    page.get_by_role("button", name="Rerun").click()
    dialog.get_by_label("Reason").fill("with another part")
    dialog.get_by_label("Change inputs").check()
    dialog.get_by_role("textbox", name="Inputs").fill('{"part": ')
    expect(dialog.get_by_role("alert")).to_contain_text("Invalid JSON")
    expect(dialog.get_by_role("button", name="Rerun")).to_be_disabled()
    dialog.get_by_role("textbox", name="Inputs").fill('{"part": "b"}')
    dialog.get_by_role("button", name="Rerun").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Not started: previous run still active.")
    dialog.get_by_label("If a run is active").select_option("terminate_other")
    dialog.get_by_role("button", name="Rerun").click()
    expect(main.get_by_text("Rerun of")).to_be_visible()
    expect(main.get_by_label("Inputs", exact=True)).to_contain_text('"part": "b"')
    assert fresh.send("GET", f"/api/runs/{busy}")["state"] == "terminated"
    page.get_by_role("button", name="Terminate run").click()
    dialog.get_by_role("button", name="Terminate run").click()
    expect(main).to_contain_text("Terminated: requested by a user")

    page.get_by_role("link", name=first).click()
    expect(main.get_by_text("Rerun as")).to_be_visible()


def test_attempts_events_and_a_log_that_follows(open_page: OpenPage, fresh: Fresh) -> None:
    write(fresh, retry_policy={"max_retries": 1, "backoff_ms": 1})
    (run_id,) = fire(fresh)
    logs, report = (f"/api/runs/{run_id}/{what}" for what in ("logs", "report"))
    taken = claimed(fresh)
    with renewed(fresh, run_id, taken):
        said = {"lease_epoch": taken, "lines": [{"stream": "stdout", "text": "line <b>one</b>"}]}
        fresh.send("POST", logs, said)
        page = alone(open_page, fresh, f"/runs/{run_id}?tab=log")
        log = page.get_by_role("log")
        expect(log).to_contain_text("line <b>one</b>")
        fresh.send("POST", logs, {**said, "lines": [{"stream": "stderr", "text": f"line {n}"} for n in range(200)]})
        expect(log).to_contain_text("line 199")
        at_end = "box => box.scrollTop > 100 && box.scrollHeight - box.scrollTop - box.clientHeight < 30"
        page.wait_for_function(at_end, arg=log.element_handle())
        log.evaluate("box => { box.scrollTop = 0; }")
        expect(page.get_by_text("Not following")).to_be_visible()
        page.get_by_role("button", name="Scroll to end").click()
        expect(page.get_by_text("Following…")).to_be_visible()
        assert_accessible(page, inside=PANEL)

    broke = {"state": "failed", "error": "the printer is on fire", "error_class": "provider_error"}
    fresh.send("POST", report, {**broke, "lease_epoch": taken})
    expect(page.get_by_role("main")).to_contain_text("attempt 2")
    fresh.send("POST", report, {**broke, "lease_epoch": claimed(fresh)})
    expect(page.get_by_label("Error message")).to_contain_text("the printer is on fire")
    page.get_by_role("tab", name="Attempts").click()
    expect(page.get_by_role("tabpanel").get_by_role("row")).to_have_count(3)
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_text("Run retried")).to_be_visible()
    page.get_by_text("Run failed").locator("xpath=ancestor::li").get_by_text("Details").click()
    expect(page.get_by_label("Details of run.failed")).to_contain_text("on fire")


def test_a_workflow_is_walked_by_keys_and_a_step_leads_back(open_page: OpenPage, served: Served) -> None:
    page = open_page(f"/runs/{served.fleet.workflow_run_id}")
    graph = page.get_by_role("group", name="Graph of brief, version 2")
    expect(graph.get_by_role("button")).to_have_count(4)
    graph.get_by_role("button", name=re.compile("^collect Succeeded")).focus()
    page.keyboard.press("ArrowRight")
    expect(graph.get_by_role("button", name=re.compile("^compose"))).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(graph.get_by_role("button", name=re.compile("^send"))).to_be_focused()
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Fit").click()
    page.get_by_text("List view").click()
    expect(page.get_by_role("listitem").filter(has_text="after collect, weather")).to_be_visible()
    assert_accessible(page, inside="details[open]")
    graph.get_by_role("button", name=re.compile("^compose")).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("compose")
    page.get_by_role("link", name="Parent run").click()
    expect(graph).to_be_visible()


def test_whoever_only_reads_sees_nothing_to_press(open_page: OpenPage, fresh: Fresh) -> None:
    write(fresh)
    (run_id,) = fire(fresh)
    page = alone(open_page, fresh, "/runs?schedule=report", role="viewer")
    expect(page.locator("tr[data-row]")).to_have_count(1)
    expect(page.locator("tr[data-row] input")).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("Stop"))).to_have_count(0)
    page.locator("tr[data-row] a").first.click()
    expect(page.get_by_role("heading", name="Details")).to_be_visible()
    expect(page).to_have_url(re.compile(rf"/runs/{run_id}(\?|$)"))
    expect(page.get_by_role("button", name=re.compile("Cancel|Terminate|Rerun"))).to_have_count(0)


def test_a_run_of_another_tenant_is_not_there(open_page: OpenPage, served: Served, watch: Watch) -> None:
    watch.expect("status of 404")
    page = open_page(f"/runs/{served.fleet.run_id}", namespace=SECOND_TENANT)
    expect(page.get_by_role("alert")).to_contain_text(re.compile("no run|not found|no such", re.IGNORECASE))
