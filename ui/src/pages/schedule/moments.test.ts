import { expect, test } from "vitest";
import { momentText } from "./moments";

test.each([
  ["2026-11-16T08:00:00.900Z", "Europe/Berlin", "2026-11-16T09:00:00+01:00"],
  ["2026-11-16T08:00:00Z", "UTC", "2026-11-16T08:00:00Z"],
  ["2026-07-16T03:30:00Z", "America/St_Johns", "2026-07-16T01:00:00-02:30"],
  // 02:30 comes twice: the offset says which of the two it is.
  ["2026-10-25T00:30:00Z", "Europe/Berlin", "2026-10-25T02:30:00+02:00"],
  ["2026-10-25T01:30:00Z", "Europe/Berlin", "2026-10-25T02:30:00+01:00"],
])("%s in %s is %s, and reads back as the same instant", (at, zone, text) => {
  expect(momentText(Date.parse(at), zone)).toBe(text);
  expect(Date.parse(text)).toBe(Math.floor(Date.parse(at) / 1000) * 1000);
});
