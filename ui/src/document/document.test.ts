import { describe, expect, test } from "vitest";
import { asText, changeOf, errorsAt, getAt, onTop, patchOf, setAt, type Change, type Doc, type Json } from "./document";

const DOCUMENT: Doc = {
  name: "a",
  spec: { cron_expressions: ["0 9 * * *", "0 12 * * *"], timezone: "UTC" },
  own: { kept: [1] },
};

describe("paths", () => {
  test.each([
    [["name"], "a"],
    [["spec", "cron_expressions", 1], "0 12 * * *"],
    [["nothing", "there"], undefined],
    [["name", "deeper"], undefined],
  ] as const)("%j", (path, value) => expect(getAt(DOCUMENT, path)).toEqual(value));

  test("a value is put where the path says, and nothing else is touched", () => {
    expect(setAt(DOCUMENT, ["spec", "timezone"], "Asia/Tokyo")).toEqual({
      ...DOCUMENT,
      spec: { cron_expressions: ["0 9 * * *", "0 12 * * *"], timezone: "Asia/Tokyo" },
    });
    expect(setAt({}, ["approval_policy", "gates"], ["send"])).toEqual({ approval_policy: { gates: ["send"] } });
    expect(setAt(DOCUMENT, ["spec", "cron_expressions", 0], "* * * * *")["spec"]).toEqual({
      cron_expressions: ["* * * * *", "0 12 * * *"],
      timezone: "UTC",
    });
  });

  test("what is taken away leaves no empty part behind", () => {
    expect(setAt({ a: { b: { c: 1 } } }, ["a", "b", "c"], undefined)).toEqual({});
    expect(setAt(DOCUMENT, ["spec", "cron_expressions", 0], undefined)["spec"]).toEqual({
      cron_expressions: ["0 12 * * *"],
      timezone: "UTC",
    });
    expect(setAt({ a: [1] }, ["a", 0], undefined)).toEqual({});
  });

  test("a list that stands where fields belong gives way to them", () => {
    expect(setAt({ a: [1] }, ["a", "b"], true)).toEqual({ a: { b: true } });
  });
});

describe("patches", () => {
  test.each<[Doc, Doc, Doc | null]>([
    [{ a: 1 }, { a: 1 }, {}],
    [{ a: 1, b: 2 }, { a: 1 }, { b: null }],
    [{ a: { b: 1, c: 2 } }, { a: { b: 1 } }, { a: { c: null } }],
    [{ a: [1, 2] }, { a: [1] }, { a: [1] }],
    [{}, { a: { b: 1 } }, { a: { b: 1 } }],
    [{ a: "x" }, { a: { b: 1 } }, { a: { b: 1 } }],
    [{}, { a: { b: null } }, null],
  ])("from %j to %j is %j", (before, after, patch) => expect(patchOf(before, after)).toEqual(patch));
});

test.each<[theirs: Doc, before: Doc, mine: Doc, both: Doc | null]>([
  [
    { a: 1, b: 3 },
    { a: 1, b: 2 },
    { a: 9, b: 2 },
    { a: 9, b: 3 },
  ],
  [{ a: { x: 1, y: 2 }, n: 1 }, { a: { x: 1 } }, { a: { x: 5, z: [1] } }, { a: { x: 5, y: 2, z: [1] }, n: 1 }],
  [{ a: 1, b: 2 }, { a: 1, b: 2 }, { b: 2 }, { b: 2 }],
  [{}, {}, { a: { b: null } }, null],
])("mine on top of %j", (theirs, before, mine, both) => expect(onTop(theirs, before, mine)).toEqual(both));

test("errors of a field and its subfields are found, and no others", () => {
  const errors = { "spec.cron_expressions[0]": ["has six fields"], spec: ["needs a time"], special: ["no"] };
  expect(errorsAt(errors, "spec")).toEqual(["has six fields", "needs a time"]);
  expect(errorsAt(errors, "spec.cron_expressions")).toEqual(["has six fields"]);
});

test.each<[why: string, before: Doc, after: Doc, change: Change]>([
  ["what a patch can say", { a: 1, b: 2 }, { a: 3 }, { how: "merge", body: { a: 3, b: null } }],
  [
    "a null in an object: its part is replaced",
    { memo: { x: 1 }, note: "n" },
    { memo: { x: null, y: 2 }, note: "n" },
    { how: "parts", body: { memo: { x: null, y: 2 } } },
  ],
  [
    "an action is merged by key",
    { action: { kind: "http", input: { x: 1 }, url: "u" } },
    { action: { kind: "http", input: { x: null }, url: "u" } },
    { how: "parts", body: { action: { input: { x: null } } } },
  ],
  [
    "a null, and a part that goes: all of it, and a note that goes is said to",
    { memo: { x: 1 }, note: "n" },
    { memo: { x: null } },
    { how: "whole", body: { memo: { x: null }, note: null } },
  ],
  [
    "a null, and a part that goes while the note stays",
    { memo: { x: 1 }, labels: {}, note: "n" },
    { memo: { x: null }, note: "n" },
    { how: "whole", body: { memo: { x: null }, note: "n" } },
  ],
  [
    "a null, and a key of the action that goes",
    { action: { a: 1, input: {} } },
    { action: { input: { x: null } } },
    { how: "whole", body: { action: { input: { x: null } } } },
  ],
  ["a null of the document itself", { note: "n" }, { note: null }, { how: "whole", body: { note: null } }],
  [
    "jitter would stay",
    { spec: { jitter_seconds: 3 }, memo: {} },
    { spec: { at: [] }, memo: { x: null } },
    { how: "whole", body: { spec: { at: [] }, memo: { x: null } } },
  ],
])("%s", (_why, before, after, change) => expect(changeOf(before, after)).toEqual(change));

test.each<[value: Json | undefined, shown: string]>([
  [undefined, ""],
  [null, ""],
  ["a", "a"],
  [0, "0"],
  [false, "false"],
  [{ a: [1] }, '{"a":[1]}'],
])("%j is shown as %j", (value, shown) => expect(asText(value)).toBe(shown));
