import { QueryClient } from "@tanstack/react-query";
import { describe, expect, test } from "vitest";
import { isAbout, isGone, letGo } from "./gone";

const PATH = "/api/schedules/{schedule_id}";
const ours = { path: { schedule_id: "nightly" } };

describe("isAbout", () => {
  test.each<[key: readonly unknown[], about: boolean]>([
    [["default", PATH, ours], true],
    [["default", PATH, ours, "tagged"], true],
    [["default", `${PATH}/runs`, { ...ours, query: { page_size: 3 } }, "pages"], true],
    [["default", PATH, { path: { schedule_id: "weekly" } }], false],
    [["other", PATH, ours], false],
    [["default", "/api/schedules", { query: {} }], false],
    [["default", "/api/schedules/{schedule_id}s", ours], false],
    [["default", "draft", "nightly", {}], false],
    [["session"], false],
  ])("%j", (key, about) => {
    expect(isAbout(key, "default", PATH, ours.path)).toBe(about);
  });
});

test("what went is gone until it is refused, or there is a new one of that name", () => {
  const queries = new QueryClient();
  const key = ["default", PATH, ours];
  queries.setQueryData(key, { schedule_id: "nightly" }, { updatedAt: 1_000 });
  const query = queries.getQueryCache().find({ queryKey: key })!;
  expect(isGone(query)).toBe(false);
  const back = letGo(queries, "default", PATH, ours.path);
  expect(isGone(query)).toBe(true);
  back();
  expect(isGone(query)).toBe(false);
  letGo(queries, "default", PATH, ours.path);
  queries.setQueryData(key, { schedule_id: "nightly", note: "another" }, { updatedAt: 2_000 });
  expect(isGone(query)).toBe(false);
});
