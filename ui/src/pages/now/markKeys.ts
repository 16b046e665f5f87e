// Arrow keys on marks: left and right within a lane, up and down to the nearest mark of the next lane.

/** Return whether the key was handled. */
export function moveAmongMarks(event: KeyboardEvent): boolean {
  const mark = (event.target as Element).closest<SVGElement>("[data-mark]");
  if (mark === null || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return false;
  if (event.key === "Enter" || event.key === " ") {
    mark.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    return true;
  }
  const next = nextMark(mark, event.key);
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return next !== null || event.key.startsWith("Arrow");
}

function nextMark(mark: SVGElement, key: string): SVGElement | null {
  const own = marksOf(mark.closest("[data-lane]"));
  const index = own.indexOf(mark);
  if (key === "ArrowRight") return own[index + 1] ?? null;
  if (key === "ArrowLeft") return own[index - 1] ?? null;
  if (key === "Home") return own[0] ?? null;
  if (key === "End") return own.at(-1) ?? null;
  const step = { ArrowDown: 1, ArrowUp: -1 }[key];
  return step === undefined ? null : nearestMark(mark, step);
}

/** Skip lanes without a visible mark. */
function nearestMark(mark: SVGElement, step: number): SVGElement | null {
  const lanes = [...document.querySelectorAll<HTMLElement>("[data-lane]")].sort(
    (one, other) => Number(one.dataset["place"]) - Number(other.dataset["place"]),
  );
  const x = mark.getBoundingClientRect().left;
  for (
    let at = lanes.indexOf(mark.closest<HTMLElement>("[data-lane]")!) + step;
    at >= 0 && at < lanes.length;
    at += step
  ) {
    const marks = marksOf(lanes[at]!);
    const far = (each: SVGElement) => Math.abs(each.getBoundingClientRect().left - x);
    if (marks.length > 0) return marks.reduce((one, other) => (far(other) < far(one) ? other : one));
  }
  return null;
}

function marksOf(lane: Element | null): SVGElement[] {
  return lane === null ? [] : [...lane.querySelectorAll<SVGElement>("[data-mark]")];
}
