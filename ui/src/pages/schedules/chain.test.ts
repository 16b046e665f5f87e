import { describe, expect, test } from "vitest";
import {
  answered,
  lengthOf,
  NOTHING_SEEN,
  pagesWanted,
  placeOf,
  rowsOf,
  uidAt,
  withoutStale,
  type Answer,
  type Chain,
  type Cursor,
} from "./chain";

const row = (uid: string) => ({ uid, schedule_id: `id-${uid}`, status: "active" as const });
const page = (uids: string, next: string | null): Answer => ({ schedules: [...uids].map(row), next_page_token: next });
const chainOf = (...pages: [Cursor, string, string | null][]): Chain =>
  pages.reduce((chain, [cursor, uids, next]) => answered(chain, cursor, page(uids, next)), NOTHING_SEEN);
const text = ({ seen, next }: Chain) => [
  ...seen.map(({ cursor, uids }) => `${cursor ?? ""}:${uids.join("")}`),
  ...(next === undefined ? [] : [`${next}…`]),
];

const THREE = chainOf([null, "abc", "c"], ["c", "def", "f"], ["f", "ghi", "i"]);

describe("what is known after an answer", () => {
  test.each<[string, Chain, Cursor, Answer, string[]]>([
    ["the first page", NOTHING_SEEN, null, page("abc", "c"), [":abc", "c…"]],
    ["the first and only page", NOTHING_SEEN, null, page("abc", null), [":abc"]],
    ["a page without a row that fits, and more behind it", NOTHING_SEEN, null, page("", "x"), [":", "x…"]],
    ["the next page", chainOf([null, "abc", "c"]), "c", page("de", null), [":abc", "c:de"]],
    ["a new row at the beginning", THREE, null, page("zabcd", "d"), [":zabc", "c:def", "f:ghi", "i…"]],
    ["a row that is gone", THREE, "c", page("dfgh", "h"), [":abc", "c:df", "f:ghi", "i…"]],
    ["the last row of a page is gone", THREE, "c", page("degh", "h"), [":abc", "c:degh", "h…"]],
    ["more new rows than there was room for", THREE, null, page("wxyz", "z"), [":wxyz", "z…"]],
    ["nothing is left behind it", THREE, "c", page("df", null), [":abc", "c:df"]],
    ["nothing is left", THREE, null, page("", null), [":"]],
    ["more behind what was the end", chainOf([null, "abc", null]), null, page("abcd", "d"), [":abcd", "d…"]],
    ["a page that was forgotten meanwhile", THREE, "x", page("xyz", "z"), [":abc", "c:def", "f:ghi", "i…"]],
  ])("%s", (_, before, cursor, answer, after) => {
    const known = answered(before, cursor, answer);
    expect(text(known)).toEqual(after);
    expect(answered(known, cursor, answer)).toBe(known);
  });
});

test("the rows of a page are those that no other page has", () => {
  const answer = page("zabcd", "d");
  const known = answered(THREE, null, answer);
  expect(rowsOf(known, null, answer).map((each) => each.uid)).toEqual(["z", "a", "b", "c"]);
  expect(rowsOf(known, "x", answer)).toEqual([]);
  expect([0, 3, 4, 9, 10].map((index) => uidAt(known, index))).toEqual(["z", "c", "d", "i", undefined]);
});

test("a deleted one has a place and cannot be chosen", () => {
  const answer = { schedules: [row("a"), { ...row("b"), status: "deleted" as const }], next_page_token: null };
  const [seen] = answered(NOTHING_SEEN, null, answer).seen;
  expect([seen!.uids, seen!.ids]).toEqual([["a", "b"], ["id-a"]]);
});

test.each<[string, Cursor, string[]]>([
  ["in the middle", "f", [":abc", "c…"]],
  ["the next one", "i", [":abc", "c:def", "f…"]],
  ["the second", "c", ["null…"]],
])("where a page begins after a row that is gone, the page before is asked for again: %s", (_, cursor, after) => {
  const known = withoutStale(THREE, cursor);
  expect(text(known)).toEqual(after);
  expect(lengthOf(known, null)).toBeGreaterThanOrEqual(THREE.count);
});

describe("a list of a hundred thousand", () => {
  const long = Array.from({ length: 50 }, (_, index) => index).reduce(
    (chain, index) =>
      answered(chain, index === 0 ? null : `c${index}`, {
        schedules: Array.from({ length: 100 }, (_each, place) => row(`${index * 100 + place}`)),
        next_page_token: `c${index + 1}`,
      }),
    NOTHING_SEEN,
  );

  test.each([
    [0, 0],
    [99, 0],
    [100, 1],
    [4_999, 49],
    [70_000, 49],
  ])("row %i is on page %i", (index, place) => expect(placeOf(long, index)).toBe(place));

  test.each<[string, number, number, string[]]>([
    ["at the beginning", 0, 20, ["", "c1"]],
    ["in the middle", 2_090, 2_110, ["c19", "c20", "c21", "c22"]],
    ["near the end of what is known", 4_940, 4_970, ["c48", "c49", "c50"]],
    ["on the way elsewhere", 70_000, 70_020, ["c50 only where it ends"]],
  ])("which pages are asked for: %s", (_, first, last, asked) => {
    const found = pagesWanted(long, { first, last });
    expect(found.map((each) => `${each.cursor ?? ""}${each.whole ? "" : " only where it ends"}`)).toEqual(asked);
  });

  test.each([
    [null, 5_008],
    [100_000, 100_000],
    [3, 5_008],
  ])("with a count of %s there are places for %i", (total, length) => expect(lengthOf(long, total)).toBe(length));

  test("at its end there is no place for more", () =>
    expect(lengthOf(answered(long, "c50", page("z", null)), 100_000)).toBe(5_001));
});
