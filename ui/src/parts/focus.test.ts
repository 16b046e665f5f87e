import { afterEach, expect, it } from "vitest";
import { nearestTo, placeOf, withPlace, type Place } from "./focus";

afterEach(() => document.body.replaceChildren());

/** Where the focus stood on `lost`, once the document has become `after`; boxes keep their identity by their ids. */
function nextAfter(before: string, lost: string, change: () => void): string | null {
  document.body.innerHTML = before;
  const place = placeOf(document.querySelector(lost)!);
  change();
  return nearestTo(place)?.id ?? null;
}

const gone = (id: string) => () => document.getElementById(id)!.remove();
const LIST = `<ul>
  <li data-row id="r1"><input id="c1"><a href="#" id="a1"></a></li>
  <li data-row id="r2"><input id="c2"><a href="#" id="a2"></a></li>
  <li data-row id="r3"><input id="c3"><a href="#" id="a3"></a></li>
</ul>`;

it.each([
  ["it is still there", LIST, "#a2", () => undefined, "a2"],
  ["a row vanishes: the same control of the next one", LIST, "#a2", gone("r2"), "a3"],
  ["a checkbox does the same", LIST, "#c2", gone("r2"), "c3"],
  ["the last row vanishes", LIST, "#a3", gone("r3"), "a2"],
  ["only the control vanishes: another one of its row", LIST, "#a2", gone("a2"), "c2"],
  ["nothing is left of it", LIST, "#a2", () => document.body.replaceChildren(), null],
  [
    "a button becomes another one",
    '<div class="actions"><button id="trigger"></button><button id="pause"></button><button id="edit"></button></div>',
    "#pause",
    () =>
      document.getElementById("pause")!.replaceWith(Object.assign(document.createElement("button"), { id: "resume" })),
    "resume",
  ],
  [
    "it can do nothing any more",
    '<div role="group"><button id="before"></button><button id="after"></button></div>',
    "#before",
    () => document.getElementById("before")!.setAttribute("disabled", ""),
    "after",
  ],
])("%s", (_, before, lost, change, found) => expect(nextAfter(before, lost, change)).toBe(found));

it("comes back out of a dialog to where it was opened from, however often it moved inside", () => {
  const made = (id: string): Element => Object.assign(document.createElement("div"), { id });
  const [opener, dialog, other] = [made("opener"), made("dialog"), made("other")];
  const at = (element: Element, inside: Element | null): Place => ({ element, nearby: [], dialog: inside });
  const stood = [at(opener, null), at(dialog, dialog), at(other, dialog)].reduce<Place[]>(withPlace, []);
  expect(stood.map(({ element }) => element.id)).toEqual(["opener", "other"]);
  expect(withPlace(stood, at(other, null)).map(({ element }) => element.id)).toEqual(["other"]);
});
