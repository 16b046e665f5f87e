import { renderHook } from "@testing-library/react";
import { act } from "react";
import { expect, test } from "vitest";
import { useUnreadable, withoutUnreadable } from "./unreadable";

const bad = { id: "b", unreadable: true, detail: "state: 'melted' is not known" };

test("a row that cannot be read is taken out of its list and reported until it is repaired", () => {
  const { result } = renderHook(() => useUnreadable("default"));
  const ask = (...runs: unknown[]) => withoutUnreadable("default", "api/runs", { runs, next_page_token: null });
  let answer: unknown;
  act(() => void (answer = ask({ run_id: "a" }, bad)));
  expect(answer).toEqual({ runs: [{ run_id: "a" }], next_page_token: null });
  expect(result.current).toEqual([bad]);
  act(() => void ask({ run_id: "a" }, { run_id: "b" }));
  expect(result.current).toEqual([]);
});

test("an answer without such rows stays the same object, and other namespaces see nothing of it", () => {
  const whole = { runs: [{ run_id: "a" }] };
  expect(withoutUnreadable("default", "api/runs", whole)).toBe(whole);
  withoutUnreadable("other", "api/runs", { runs: [bad] });
  expect(renderHook(() => useUnreadable("default")).result.current).toEqual([]);
});
