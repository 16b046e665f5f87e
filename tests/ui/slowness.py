"""A browser on a busy machine behind a slow network, in which whatever depends on the order of answers shows.

`HORARIUM_SLOW_BROWSER=7` makes every answer late by a time of its own, drawn from that number, and every script four
times slower. A test that only passes while everything is quick is a defect, and so is a page that only works then.
"""

from __future__ import annotations

import os

from playwright.sync_api import BrowserContext, Page

_SEED = os.environ.get("HORARIUM_SLOW_BROWSER")
# Three of four answers are a little late, and the fourth by so much that later questions are answered before it.
_LATE = """(() => {
  const [ask, wait] = [window.fetch.bind(window), window.setTimeout.bind(window)];
  let state = SEED;
  const drawn = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const late = () => new Promise((go) => wait(go, drawn() < 0.75 ? 60 * drawn() : 900 * drawn()));
  window.fetch = async (...asked) => {
    await late();
    const answer = await ask(...asked);
    await late();
    return answer;
  };
})()"""
_SLOWER = 4


def slow_answers(context: BrowserContext) -> None:
    if _SEED is not None:
        context.add_init_script(_LATE.replace("SEED", str(int(_SEED))))


def slow_scripts(page: Page) -> None:
    if _SEED is not None:
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": _SLOWER})
