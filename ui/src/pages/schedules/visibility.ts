// Visible columns, saved in this browser.
export type ColumnId = "choose" | "name" | "words" | "next" | "recent" | "duration" | "labels" | "owner" | "menu";

/** Columns that can be hidden, with their names. */
export const HIDEABLE: readonly (readonly [id: ColumnId, text: string])[] = [
  ["words", "Schedule"],
  ["next", "Next run"],
  ["recent", "Last 30 occurrences"],
  ["duration", "Duration of last 30 runs"],
  ["labels", "Labels"],
  ["owner", "Owner"],
];

export const COLUMNS_KEY = "horarium.schedules.columns";
const HIDDEN_AT_FIRST: readonly ColumnId[] = ["owner"];

/** Parse the stored ids of hidden columns. */
export function hiddenOf(kept: string | null): ColumnId[] {
  if (kept === null) return [...HIDDEN_AT_FIRST];
  const named = kept.split(",");
  return HIDEABLE.map(([id]) => id).filter((id) => named.includes(id));
}

export function withHidden(hidden: readonly ColumnId[], id: ColumnId, isHidden: boolean): ColumnId[] {
  return HIDEABLE.map(([each]) => each).filter((each) => (each === id ? isHidden : hidden.includes(each)));
}
