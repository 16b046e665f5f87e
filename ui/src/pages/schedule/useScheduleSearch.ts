// Reads and changes the search parameters of the schedule page.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { readSearch, type Search } from "./search";

export type Changes = { [K in keyof Search]?: Search[K] | undefined };

/** null and undefined remove a parameter. */
export function useScheduleSearch(scheduleId: string): readonly [Search, (changes: Changes) => void] {
  const given: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const search = useMemo(() => readSearch(given), [given]);
  const change = useCallback(
    (changes: Changes) =>
      void navigate({
        to: "/schedules/$scheduleId",
        params: { scheduleId },
        search: (before: Record<string, unknown>) => changed(before, changes) as never,
        replace: true,
        resetScroll: false,
      }),
    [navigate, scheduleId],
  );
  return [search, change];
}

export function changed(before: Record<string, unknown>, changes: Changes): Record<string, unknown> {
  const after: Record<string, unknown> = { ...before };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined) delete after[name];
    else after[name] = value;
  }
  return after;
}
