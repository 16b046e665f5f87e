import { describe, expect, test } from "vitest";
import { instantOfWall, rfc3339 } from "./wall";

describe("instantOfWall", () => {
  test.each([
    ["2026-11-16T09:00", "UTC", "2026-11-16T09:00:00Z"],
    ["2026-11-16T09:00", "Europe/Berlin", "2026-11-16T08:00:00Z"],
    ["2026-07-16T09:00:30", "Europe/Berlin", "2026-07-16T07:00:30Z"],
    ["2026-11-16T09:00", "Asia/Kathmandu", "2026-11-16T03:15:00Z"],
    ["2026-03-29T01:59", "Europe/Berlin", "2026-03-29T00:59:00Z"],
    ["2026-03-29T02:30", "Europe/Berlin", null], // no clock shows it
    ["2026-03-29T03:00", "Europe/Berlin", "2026-03-29T01:00:00Z"],
    ["2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00Z"], // shown twice
    ["2026-10-25T03:00", "Europe/Berlin", "2026-10-25T02:00:00Z"],
    ["2026-11-01T01:30", "America/New_York", "2026-11-01T05:30:00Z"],
    ["2026-02-30T09:00", "UTC", null],
    ["2026-13-01T09:00", "UTC", null],
    ["2026-11-16T25:00", "UTC", null],
    ["2026-11-16", "UTC", null],
    ["tomorrow", "UTC", null],
    ["", "UTC", null],
    ["2026-11-16T09:00", "Nowhere/Land", null],
  ])("%s in %s", (text, zone, at) => {
    const found = instantOfWall(text, zone);
    expect(found === null ? null : rfc3339(found)).toBe(at);
  });
});
