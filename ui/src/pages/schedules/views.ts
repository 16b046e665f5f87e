// Named filters: built-in views and views saved in this browser.
import { HEALTH } from "../../words";
import { filtersOf, NO_FILTERS, sameFilters, searchOf, type Filters } from "./filters";

export interface View {
  name: string;
  filters: Filters;
}

export const BUILT_IN: readonly View[] = [
  { name: "All", filters: NO_FILTERS },
  { name: "Failing", filters: { ...NO_FILTERS, health: "failing" } },
  { name: "Late", filters: { ...NO_FILTERS, health: "late" } },
  { name: "Paused", filters: { ...NO_FILTERS, status: "paused" } },
  { name: "Broken", filters: { ...NO_FILTERS, status: "broken" } },
  { name: HEALTH.waiting_for_approval, filters: { ...NO_FILTERS, health: "waiting_for_approval" } },
];

export const VIEWS_KEY = "horarium.views";
const MOST_VIEWS = 50;
export const LONGEST_NAME = 60;

/** Parse the stored views and ignore invalid ones. */
export function viewsOf(kept: string | null): View[] {
  let found: unknown;
  try {
    found = JSON.parse(kept ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(found)) return [];
  return found.slice(0, MOST_VIEWS).flatMap((each: unknown) => {
    const { name, search } = (typeof each === "object" && each !== null ? each : {}) as {
      name?: unknown;
      search?: unknown;
    };
    if (typeof name !== "string" || name.trim() === "" || typeof search !== "object" || search === null) return [];
    return [{ name: name.trim().slice(0, LONGEST_NAME), filters: filtersOf(search as Record<string, unknown>) }];
  });
}

export function viewsText(views: readonly View[]): string {
  return JSON.stringify(views.map(({ name, filters }) => ({ name, search: searchOf(filters) })));
}

/** Add or replace a view by name. Above the limit, the oldest views are removed. */
export function withView(views: readonly View[], view: View): View[] {
  const others = views.filter(({ name }) => name !== view.name);
  return [...others, view].slice(-MOST_VIEWS);
}

/** Return the view with these filters. */
export function viewAt(views: readonly View[], filters: Filters): View | undefined {
  return views.find((each) => sameFilters(each.filters, filters));
}
