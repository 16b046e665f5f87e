import { expect, test } from "vitest";
import { boundOf, byLabel, parsed, total } from "./exposition";

const TEXT = `# HELP horarium_run_ends_total Runs that ended, by state.
# TYPE horarium_run_ends_total counter
horarium_run_ends_total{state="succeeded"} 12.0
horarium_run_ends_total{state="failed"} 3.0
horarium_run_ends_total{state="expired"} 0.0
horarium_ticks_total 812.0
horarium_started 1.7948335516880682e+09 1794833551688
horarium_drift_seconds_bucket{le="0.1"} 90
horarium_drift_seconds_bucket{le="1.0"} 99
horarium_drift_seconds_bucket{le="+Inf"} 100
odd{text="a \\"quoted\\" \\\\ one, with } and \\n"} 1
`;

test("samples with their labels", () => {
  const samples = parsed(TEXT);
  expect(samples).toHaveLength(9);
  expect(samples[4]).toEqual({ name: "horarium_started", labels: {}, value: 1.7948335516880682e9 });
  expect(samples.at(-1)!.labels["text"]).toBe('a "quoted" \\ one, with } and \n');
});

test.each([[""], ["nonsense"], ["name{ 1"], ['{a="b"} 1'], ["name NaN"], ["<html>500</html>"], ["a".repeat(10_000)]])(
  "no sample in %j",
  (text) => {
    expect(parsed(text)).toEqual([]);
  },
);

test("lines above the limit are ignored", () => {
  expect(parsed("a 1\n".repeat(50_000))).toHaveLength(20_000);
});

test("totals", () => {
  expect(total(parsed(TEXT), "horarium_run_ends_total")).toBe(15);
  expect(total(parsed(TEXT), "not_there")).toBe(null);
  expect(byLabel(parsed(TEXT), "horarium_run_ends_total", "state")).toEqual([
    ["succeeded", 12],
    ["failed", 3],
  ]);
});

test.each([
  [0.5, 0.1],
  [0.95, 1],
  [1, Infinity],
])("%d of the drift is below %d", (share, bound) => {
  expect(boundOf(parsed(TEXT), "horarium_drift_seconds", share)).toBe(bound);
});

test("nothing measured has no bound", () => {
  expect(boundOf(parsed('a_bucket{le="+Inf"} 0'), "a", 0.5)).toBe(null);
  expect(boundOf([], "a", 0.5)).toBe(null);
});
