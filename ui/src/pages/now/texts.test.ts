import { expect, test } from "vitest";
import { type Row } from "./groups";
import { markText } from "./texts";

const row = (at: string) =>
  ({ at, decision: "dispatch", reason: null, predicted: false, state: "running", count: 1 }) as Row;

test("the range of a group begins with its earliest row, also where the rows stand by place", () => {
  const rows = [row("2026-11-20T02:00:00Z"), row("2026-11-20T00:40:00Z")];
  expect(markText({ rows, count: 2, worst: rows[0]! }, null, "UTC")).toContain("00:40 – 02:00");
});
