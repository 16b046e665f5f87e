import { render } from "@testing-library/react";
import { expect, test } from "vitest";
import { chooseZone } from "../time/zones";
import { When } from "./When";

test.each([
  ["Europe/Berlin", "Asia/Kathmandu", /^Thu 1 Jan 1970, 01:00 Berlin05:30 Kathmandu/],
  ["Europe/Berlin", "Europe/Paris", /^Thu 1 Jan 1970, 01:00\d/], // one clock is enough
  ["America/New_York", "UTC", /^Wed 31 Dec 1969, 19:00 New YorkThu 1 Jan 1970, 00:00 UTC/],
])("a dense time of %s for a viewer in %s", (zone, viewer, text) => {
  chooseZone(viewer);
  const { container } = render(<When at="1970-01-01T00:00:00Z" zone={zone} dense />);
  expect(container.textContent).toMatch(text);
});

test("this year is not said again", () => {
  chooseZone("UTC");
  const at = new Date(Date.UTC(new Date().getUTCFullYear(), 5, 15)).toISOString();
  const { container } = render(<When at={at} zone="UTC" dense />);
  expect(container.textContent).toMatch(/^\w{3} 15 Jun, 00:00/);
});
