"""Names that are markup, that turn writing around, that pile up marks or never end: text on every page, and no more."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Locator, Page, expect
from ui.conftest import Fresh, OpenPage, new_namespace
from ui.days import hourly
from ui.fleet import DISCARD, MARKUP
from ui.looking import NARROW, assert_fits, follow, settled
from ui.serving import Served
from ui.test_pages import PAGES

from horarium.platform.clock import SystemClock

# Markup; an override and an isolate that nobody ends; marks upon marks; nothing at all; a word without an end.
NAME = f"{MARKUP} \u202eelcyc \u2067שלום Z\u0351\u0321\u0489\u0300\u0301 a\u200b\u200d\ufeffb {'long' * 25}"
LABEL = NAME[: NAME.index("long") + 4]
# Of a team and of its like no name is taken that has characters which nobody sees.
SEEN = "".join(each for each in NAME if each.isprintable())
# Nothing is shown there that has a name of somebody's choice.
NAMELESS = ("/runs", "/calendars", "/calendars/$name", "/audit", "/cluster", "/schedules/new")


@dataclass(frozen=True)
class Hostile:
    """A namespace in which everything that can have a name has this one."""

    fresh: Fresh = field(repr=False)
    run_id: str
    approval_id: str

    def address(self, route: str) -> str:
        given = {"$runId": self.run_id, "$approvalId": self.approval_id, "$name": "days"}
        for name in ("$scheduleId", "$workflowId", "$agentId", "$teamId"):
            given[name] = "it"
        return "/".join(given.get(part, part) for part in route.split("/"))


@pytest.fixture(scope="module")
def hostile(served: Served) -> Hostile:
    fresh = new_namespace(served)
    call = {"kind": "http", "url": DISCARD}
    fresh.send("POST", "/api/agents", {"id": "it", "name": NAME, "url": DISCARD})
    fresh.send("POST", "/api/teams", {"team_id": "it", "name": SEEN, "members": ["it"]})
    fresh.send("POST", "/api/calendars", {"name": "days", "kind": "skip_dates", "dates": ["2026-12-24"]})
    fresh.send("PUT", "/api/workflows/it", {"name": SEEN, "nodes": [{"id": "only", "action": call}]})
    fresh.send("POST", "/api/tokens", {"name": SEEN[:100], "role": "viewer"})
    fresh.send(
        "POST",
        "/api/schedules",
        {
            "schedule_id": "it",
            "name": NAME,
            "note": NAME,
            "labels": {"team": LABEL, "then": "another"},
            "cron_expressions": [hourly(SystemClock().now())],  # so that it has a lane on Now
            "action": {**call, "input": {"to": NAME}},
            "approval_policy": {"requires_approval": True},
        },
    )
    run_id = fresh.send("POST", "/api/schedules/it/trigger", {"reason": NAME})["run_id"]
    asked = fresh.send("GET", "/api/approvals?schedule_id=it")["approvals"]
    return Hostile(fresh, run_id, next(each["approval_id"] for each in asked if each["run_id"] == run_id))


# Texts with the override behind which something else stands in the same isolate: that would be turned around. A
# document that is shown as it is has its own lines, and what is written into a field is the browser's.
_TURNED = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    let box = text.parentElement;
    if (!text.data.includes('\\u202e') || box.closest('pre, code, textarea, option, title') !== null) continue;
    while (getComputedStyle(box).unicodeBidi === 'normal') box = box.parentElement;
    const range = document.createRange();
    range.selectNodeContents(box);
    range.setStart(text, text.data.lastIndexOf('long') < 0 ? text.length : text.data.lastIndexOf('long') + 4);
    const behind = range.toString().replace(/^(l|lo|lon)?…/, ''); // where it is too long it is cut
    const isTurned = /[\\p{L}\\p{N}]/u.test(behind) && !behind.startsWith('\\u2069');
    if (isTurned) found.push(`${box.outerHTML.slice(0, 60)}: ${behind}`);
  }
  return found;
}"""


def test_a_hostile_name_is_text_that_turns_nothing_and_breaks_no_page(open_page: OpenPage, hostile: Hostile) -> None:
    page = open_page("/schedules", token=hostile.fresh.tokens["admin"], width=NARROW["width"])
    settled(page)
    for route in (shown.route for shown in PAGES):
        follow(page, hostile.address(route))
        if route not in NAMELESS:
            expect(named(page), route).to_be_visible()
        expect(page.locator("img[src='x']"), route).to_have_count(0)
        assert_fits(page)
        assert page.evaluate(_TURNED) == [], route


def named(page: Page) -> Locator:
    """In a text, or in the field in which it is changed."""
    found = page.get_by_role("main").get_by_text("<img src=x").or_(page.locator("main input[value*='<img']"))
    return found.filter(visible=True).first
