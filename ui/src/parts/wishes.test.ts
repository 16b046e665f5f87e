import { describe, expect, test } from "vitest";
import { inputsOf, labelsOf, untilOf } from "./wishes";

const NOW = Date.parse("2026-11-16T12:00:00.750Z");

describe("untilOf", () => {
  test.each([
    ["", "", null],
    ["3600", "", "2026-11-16T13:00:00Z"],
    ["604800", "", "2026-11-23T12:00:00Z"],
    ["at", "2026-11-17T09:00", "2026-11-17T08:00:00Z"],
  ])("%s %s", (lasting, at, until) => {
    expect(untilOf({ lasting, at }, NOW, "Europe/Berlin")).toEqual({ body: until, wrong: null });
  });

  test.each(["", "2026-03-29T02:30"])("a time that is none: %s", (at) => {
    expect(untilOf({ lasting: "at", at }, NOW, "Europe/Berlin").wrong).toHaveProperty("at");
  });
});

describe("inputsOf", () => {
  test.each([
    ["", undefined],
    ["  \n", undefined],
    ['{"day": 1}', { day: 1 }],
    ["null", null],
    ["[1]", [1]],
  ])("%j", (text, body) => {
    expect(inputsOf(text)).toEqual({ body, wrong: null });
  });

  test("what is no JSON is named", () => {
    expect(inputsOf("{day: 1}").wrong?.inputs?.[0]).toContain("no JSON");
  });
});

describe("labelsOf", () => {
  test.each([
    ["team=data", "", { team: "data" }],
    ["team=data\n\n tier = gold ", "", { team: "data", tier: "gold" }],
    ["url=a=b", "", { url: "a=b" }],
    ["empty=", "", { empty: "" }],
    ["", "old, older\noldest", { old: null, older: null, oldest: null }],
    ["a=1", "b", { a: "1", b: null }],
  ])("%j and %j", (set, off, body) => {
    expect(labelsOf({ set, off })).toEqual({ body, wrong: null });
  });

  test.each([
    ["", "", "set"],
    ["team", "", "set"],
    ["=data", "", "set"],
    ["a=1", "a", "off"],
  ])("%j and %j are refused", (set, off, field) => {
    expect(labelsOf({ set, off }).wrong).toHaveProperty(field);
  });
});
