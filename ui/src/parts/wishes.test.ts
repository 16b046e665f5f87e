import { describe, expect, test } from "vitest";
import { endOf, inputsOf, labelsOf } from "./wishes";

describe("endOf", () => {
  test.each([
    ["", "", { until: null }],
    ["4h", "", { until: "4h" }],
    ["4h", "2026-11-17T09:00", { until: "4h" }],
    // No clock shows it: what that means is the service's business.
    ["at", "2026-03-29T02:30", { until: "2026-03-29T02:30", timezone: "Europe/Berlin" }],
  ])("%s %s", (lasting, at, body) => {
    expect(endOf({ lasting, at }, "Europe/Berlin")).toEqual({ body, wrong: null });
  });

  test("a missing date and time", () => {
    expect(endOf({ lasting: "at", at: "" }, "Europe/Berlin").wrong).toHaveProperty("at");
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
    expect(inputsOf("{day: 1}").wrong?.inputs?.[0]).toContain("Invalid JSON");
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
