import { describe, expect, it } from "vitest";
import { mergePatch, parseJson, sameJson } from "./jsonInput";

describe("parseJson", () => {
  it.each<[text: string, value: unknown]>([
    ['{"a": 1}', { a: 1 }],
    ["null", null],
    [" [1] ", [1]],
  ])("reads %s", (text, value) => {
    expect(parseJson(text)).toEqual({ ok: true, value });
  });

  it.each([
    ["", "empty"],
    ["  ", "empty"],
    ["{a: 1}", "Invalid JSON"],
    ['{"a": 1', "Invalid JSON"],
  ])("refuses %j", (text, said) => {
    const read = parseJson(text);
    expect(read.ok ? "" : read.message).toContain(said);
  });
});

describe("sameJson", () => {
  it.each<[one: unknown, other: unknown, same: boolean]>([
    [{ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }, true],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [{ a: undefined }, { b: undefined }, false],
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [null, {}, false],
    [1, "1", false],
  ])("%j and %j", (one, other, same) => {
    expect(sameJson(one, other)).toBe(same);
  });
});

describe("mergePatch", () => {
  it.each<[name: string, before: unknown, after: unknown, patch: unknown]>([
    ["nothing", { a: 1 }, { a: 1 }, {}],
    ["a change", { a: 1, b: 2 }, { a: 1, b: 3 }, { b: 3 }],
    ["one is taken away", { a: 1, b: 2 }, { a: 1 }, { b: null }],
    ["one is added", {}, { a: { b: 1 } }, { a: { b: 1 } }],
    ["deeper", { a: { b: 1, c: 2 } }, { a: { b: 1, c: 3 } }, { a: { c: 3 } }],
    ["a list is replaced as a whole", { a: [1, 2] }, { a: [1] }, { a: [1] }],
    ["nothing was given before", null, { a: 1 }, { a: 1 }],
    ["something else than an object", { a: 1 }, [1], [1]],
    ["a text becomes an object", { a: "x" }, { a: { b: 1 } }, { a: { b: 1 } }],
    ["a null that was there may stay", { a: null, b: 1 }, { a: null, b: 2 }, { b: 2 }],
  ])("%s", (_, before, after, patch) => {
    expect(mergePatch(before, after)).toEqual({ patch });
    expect(merged(before, patch)).toEqual(after);
  });

  it.each<[before: unknown, after: unknown]>([
    [{}, { a: null }],
    [{ a: 1 }, { a: null }],
    [{ a: 1 }, { a: { b: null } }],
  ])("cannot say %j → %j", (before, after) => {
    expect(mergePatch(before, after)).toBeNull();
  });
});

/** RFC 7396, section 2. */
function merged(target: unknown, patch: unknown): unknown {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const made: Record<string, unknown> =
    target !== null && typeof target === "object" && !Array.isArray(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete made[name];
    else made[name] = merged(made[name], value);
  }
  return made;
}
