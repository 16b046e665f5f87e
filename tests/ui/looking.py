"""What is held against every page: that it can be read by everybody, that it fits, and what it looks like."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, Literal

from app_build import MODULES, ROOT
from playwright.sync_api import Page, ViewportSize
from playwright.sync_api import TimeoutError as PlaywrightTimeout

IMAGES = ROOT / "docs" / "images" / "ui"
WIDE: ViewportSize = {"width": 1280, "height": 800}
NARROW: ViewportSize = {"width": 390, "height": 844}
# A window of 1280 pixels enlarged to 200 % and to 400 % (WCAG 2.2, 1.4.4 and 1.4.10).
ENLARGED: tuple[ViewportSize, ...] = ({"width": 640, "height": 400}, {"width": 320, "height": 256})
# WCAG 2.2 at A and AA holds what 2.0 and 2.1 ask for, and axe has a tag for each.
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
# A layout that follows the width of the window does so a moment later.
_FITS_MS = 20_000
COLOURS = ("color-contrast", "link-in-text-block")
DIALOG, PANEL = "dialog[open]", "[role=tabpanel]"
# A service closes what was idle for long; a question that is just then on its way has to be asked again.
RETRIES = 3
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@cache
def _axe() -> str:
    return (MODULES / "axe-core" / "axe.min.js").read_text("utf-8")


def settled(page: Page) -> None:
    """The page has its title, and nothing on it is still on its way."""
    page.locator("main h1").first.wait_for()
    at_rest(page)


def follow(page: Page, path: str) -> None:
    """Go to another page as a link does. To load the document again would take three times as long."""
    page.evaluate("path => window.__TSR_ROUTER__.history.push(path)", f"/ui{path}")
    page.wait_for_function(_ARRIVED, arg=f"/ui{path}")
    settled(page)


# The router has drawn the page of an address, whose search may have got defaults.
_ARRIVED = """path => {
  const { status, location, resolvedLocation } = window.__TSR_ROUTER__.state;
  const shown = resolvedLocation?.publicHref.split('?')[0];
  return status === 'idle' && shown === path.split('?')[0] && resolvedLocation.href === location.href;
}"""


def at_rest(page: Page) -> None:
    """What is asked for again is shown paler until its answer comes."""
    page.wait_for_function("() => document.querySelector('.loading, [aria-busy=true]') === null")


def in_theme(page: Page, theme: Literal["light", "dark"]) -> None:
    """The page hears of it a moment later; looked at in between it would be half in the one, half in the other."""
    page.emulate_media(color_scheme=theme)
    page.locator(f"html[data-theme={theme}]").wait_for()


def assert_accessible(page: Page, *, inside: str = "html", colours_alone: bool = False) -> None:
    """Nothing that axe finds wrong. It comes in through the debugger, so the page keeps its own policy.

    `inside`: a part that was not there when `test_pages.py` looked at the page. `colours_alone`: of a page that was
    looked at in one theme already, and has only changed its colours since. A theme is a set of values for colours in
    `styles/tokens.css` and nothing else, so no other rule can come to another answer.
    """
    at_rest(page)
    only = {"type": "rule", "values": list(COLOURS)} if colours_alone else {"type": "tag", "values": list(RULES)}
    page.evaluate(f"() => {{ if (!window.axe) {{ {_axe()} }} }}")
    found: list[dict[str, Any]] = page.evaluate(
        """async ([runOnly, inside]) => {
          const rules = runOnly.type === 'tag' ? { 'target-size': { enabled: true } } : {};
          const how = { runOnly, rules, resultTypes: ['violations'], preload: false, iframes: false };
          const { violations } = await axe.run(inside, how);
          return violations.map(({ id, help, nodes }) => ({
            id, help, where: nodes.slice(0, 5).map(({ target, failureSummary }) => `${target}: ${failureSummary}`),
          }));
        }""",
        [only, inside],
    )
    said = [f"{each['id']}: {each['help']}\n    " + "\n    ".join(each["where"]) for each in found]
    assert not said, f"{page.url}\n" + "\n".join(said)


# Boxes that hide a part of their text, and do not say so by an ellipsis whose whole text is a hover away.
_CUT = """() => [...document.querySelectorAll('main *, dialog[open] *')].filter((each) => {
  const style = getComputedStyle(each);
  if (each.clientWidth <= 1 || each.closest('svg, .visually-hidden, .tooltip') !== null) return false;
  if (each.textContent.trim() === '' || style.textOverflow === 'ellipsis') return false;
  if (style.webkitLineClamp !== 'none') return false;
  const hides = (overflow) => overflow === 'hidden' || overflow === 'clip';
  return (hides(style.overflowX) && each.scrollWidth > each.clientWidth + 1) ||
    (hides(style.overflowY) && each.scrollHeight > each.clientHeight + 1);
}).map((each) => `${each.tagName.toLowerCase()}.${each.className}: ${each.textContent.slice(0, 60)}`)"""


def assert_nothing_is_cut(page: Page) -> None:
    try:
        page.wait_for_function(f"() => ({_CUT})().length === 0", timeout=_FITS_MS)
    except PlaywrightTimeout:
        found = page.evaluate(_CUT)
    else:
        return
    raise AssertionError(f"{page.url}: {found[:5]}")


def assert_fits(page: Page) -> None:
    """The document does not scroll sideways, once it has settled; a wide table may scroll inside its own box."""
    try:
        page.wait_for_function(
            "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth", timeout=_FITS_MS
        )
    except PlaywrightTimeout:
        over = page.evaluate(
            """() => [...document.body.querySelectorAll('*')]
              .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
              .slice(0, 8).map((each) => `${each.tagName.toLowerCase()}.${each.className}`)"""
        )
    else:
        return
    raise AssertionError(f"{page.url} is wider than the window: {over}")


def photograph(page: Page, name: str, theme: str) -> None:
    """A picture for the documentation, written only where HORARIUM_UPDATE_IMAGES=1 asks for it."""
    if os.environ.get("HORARIUM_UPDATE_IMAGES") != "1":
        return
    page.set_viewport_size(WIDE)
    IMAGES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=_picture(name, theme), animations="disabled", caret="hide", scale="css")


def _picture(name: str, theme: str) -> Path:
    return IMAGES / f"{name}-{theme}.png"
