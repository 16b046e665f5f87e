"""How long does a person wait for the list of schedules in a browser? Beside a bare GET of the same rows.

A real `horarium up` on SQLite with its shipped settings and, unless told otherwise, 100,000 schedules; Chromium without
a window. A first visit has an empty cache, a second one has the app. What is measured is what is seen: from the step
of the person to the moment the browser has drawn the rows; beside it stand the processor time of the service and what
the page keeps in memory after its last row. The bare GET asks the same server for the first page in the same run,
between the visits, so that what the machine does besides falls upon both.
"""

from __future__ import annotations

import argparse
import gzip
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import ground
import httpx
from process import Up, cpu_seconds, up
from rich.table import Table

from horarium.instant import DAY, HOUR, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database

sys.path.append(str(Path(__file__).resolve().parents[1] / "ui" / "scripts"))

import app_build
from chromium_here import of_the_machine, of_the_package, running
from playwright.sync_api import Browser, BrowserContext, Page

_ID = "herd-of-them-all"
_PAGE = "/api/schedules?include=recent&page_size=50"
_ROW = "[role=row][data-row]"
_NEAR = 1_000  # the row that somebody scrolls to
_TARGET_MS = 1_000


def main() -> None:
    arguments = _arguments()
    node = app_build.build()
    _tell_sizes()
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder, ground.database("sqlite") as opened:
        _fill(opened, arguments.schedules)
        with up(opened, folder) as server, running(of_the_machine() or of_the_package(node)) as browser:
            found = _measured(server, browser, arguments)
    _report(found, arguments.schedules)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7, help="how often each is done")
    return parser.parse_args()


def _fill(opened: Database, count: int) -> None:
    now = SystemClock().now()
    due = now - now % DAY + 2 * DAY + 4 * HOUR
    like = ground.pattern({**ground.HERD, "schedule_id": _ID, "cron_expr": "0 4 * * *", "timezone": "UTC"}, now=now)

    def one(number: int) -> tuple[ground.Pattern, Instant]:
        return replace(like, document=like.document.replace(_ID, f"herd-{number}")), due

    ground.seed_each(opened, count, one, now=now, title="writing schedules", apart=1)
    ground.rest(opened)


# ── what is waited for ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Taken:
    """Milliseconds: of the person who waits, and of the processor in the service."""

    waited: float
    worked: float


def _measured(server: Up, browser: Browser, arguments: argparse.Namespace) -> dict[str, list[Taken]]:
    found: dict[str, list[Taken]] = {}

    def timed(name: str, work: Callable[[], object]) -> None:
        worked, before = cpu_seconds(server.pid), time.perf_counter()
        work()
        waited = time.perf_counter() - before
        found.setdefault(name, []).append(Taken(waited * 1_000, (cpu_seconds(server.pid) - worked) * 1_000))

    headers = {"Authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=server.address, headers=headers, trust_env=False, timeout=60) as http:
        http.get(_PAGE).raise_for_status()
        for number in range(arguments.rounds):
            timed("bare GET of the first page", lambda: http.get(_PAGE).raise_for_status())
            context = _signed_in(browser, server)
            page = context.new_page()
            timed("first row, first visit", lambda page=page: _open(page))
            timed("first row, second visit", lambda page=page: _open(page))
            timed(f"row {_NEAR:,} by dragging", lambda page=page: _drag(page, _NEAR))
            if number == 0:  # many seconds, whatever else is done
                before = _megabytes(page)
                timed("the oldest one by dragging", lambda page=page: _drag(page, arguments.schedules - 1))
                ground.console.print(
                    f"the page keeps {before:.0f} MB, and {_megabytes(page):.0f} MB after its last row"
                )
            timed("the oldest one by search", lambda page=page: _search(page, "herd-0"))
            context.close()
    return found


def _signed_in(browser: Browser, server: Up) -> BrowserContext:
    context = browser.new_context(base_url=f"{server.address}/ui/", viewport={"width": 1280, "height": 800})
    context.set_default_timeout(300_000)
    ours = {"Origin": server.address, "Sec-Fetch-Site": "same-origin", "X-Horarium-Source": "ui"}
    answer = context.request.post("../api/session", data={"token": server.token}, headers=ours)
    if not answer.ok:
        raise RuntimeError(f"nobody may sign in: {answer.text()}")
    return context


def _open(page: Page) -> None:
    page.goto("./schedules", wait_until="commit")
    page.locator(_ROW).first.wait_for()


def _drag(page: Page, index: int) -> None:
    page.wait_for_function(
        "() => document.querySelector('[role=table]').ariaRowCount > 1"
    )  # it knows how many there are
    page.evaluate(
        """([row, wanted]) => {
          const high = document.querySelector(row).getBoundingClientRect().height;
          const top = document.querySelector('[role=rowgroup]:last-child').getBoundingClientRect().top + scrollY;
          scrollTo(0, top + high * (wanted - 3));
        }""",
        [_ROW, index],
    )
    page.locator(f"{_ROW}[data-index='{index}']").wait_for()


def _megabytes(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1_000_000


def _search(page: Page, text: str) -> None:
    page.get_by_role("main").get_by_label("Search").fill(text)
    page.wait_for_function(
        "([row, text]) => { const found = document.querySelectorAll(row);"
        " return found.length === 1 && found[0].textContent.includes(text); }",
        arg=[_ROW, text],
    )


# ── what came of it ──────────────────────────────────────────────────────────────────────────────────


def _tell_sizes() -> None:
    static = app_build.STATIC
    page = (static / "index.html").read_text("utf-8")
    named = re.findall(r'(?:src|href)="\./([^"]+\.(?:js|css))"', page)
    sizes = {name: len(gzip.compress((static / name).read_bytes(), 9)) for name in named}
    scripts = sum(size for name, size in sizes.items() if name.endswith(".js"))
    whole = sum(len(gzip.compress(each.read_bytes(), 9)) for each in static.rglob("*.js"))
    ground.console.print(
        f"first load: {scripts / 1_000:.1f} kB of scripts, {(sum(sizes.values()) - scripts) / 1_000:.1f} kB of styles; "
        f"all pages together: {whole / 1_000:.1f} kB of scripts (gzip)"
    )


def _report(found: dict[str, list[Taken]], schedules: int) -> None:
    told = Table(title=f"{schedules:,} schedules on SQLite, load {ground.load()} at the end", title_justify="left")
    for heading in ("what", "median ms", "slowest ms", "beside the bare GET", "processor ms of the service"):
        told.add_column(heading, justify="left" if heading == "what" else "right")
    [bare, *_rest] = (statistics.median(each.waited for each in times) for times in found.values())
    for name, times in found.items():
        waited = [each.waited for each in times]
        median, worked = statistics.median(waited), statistics.median(each.worked for each in times)
        told.add_row(name, f"{median:.0f}", f"{max(waited):.0f}", f"{median / bare:.1f} x", f"{worked:.0f}")
    ground.console.print(told)
    ground.console.print(f"the list is to be interactive in less than {_TARGET_MS} ms")


if __name__ == "__main__":
    main()
