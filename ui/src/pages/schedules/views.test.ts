import { describe, expect, test } from "vitest";
import { NO_FILTERS } from "./filters";
import { BUILT_IN, viewAt, viewsOf, viewsText, withView } from "./views";

const OURS = { name: "Ours", filters: { ...NO_FILTERS, label: ["team=data"] } };

test("what is kept is read again", () => {
  expect(viewsOf(viewsText([OURS]))).toEqual([OURS]);
});

describe("what cannot be read is left out", () => {
  test.each([
    null,
    "",
    "{",
    "7",
    '{"name": "x"}',
    '[{"name": 7, "search": {}}]',
    '[{"name": " ", "search": {}}]',
    '[{"name": "x"}]',
    "[null]",
  ])("%j", (kept) => {
    expect(viewsOf(kept)).toEqual([]);
  });

  test("no more than fifty", () => {
    expect(
      viewsOf(JSON.stringify(Array.from({ length: 80 }, (_, at) => ({ name: `v${at}`, search: {} })))),
    ).toHaveLength(50);
  });

  test("an unknown filter is ignored", () => {
    expect(viewsOf('[{"name": "x", "search": {"status": "asleep"}}]')).toEqual([{ name: "x", filters: NO_FILTERS }]);
  });
});

test("a name stands once", () => {
  const other = { name: "Ours", filters: NO_FILTERS };
  expect(withView([OURS], other)).toEqual([other]);
});

test("every built-in view has different filters", () => {
  for (const view of BUILT_IN) expect(viewAt(BUILT_IN, view.filters)?.name).toBe(view.name);
});
