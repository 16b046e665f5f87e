// Which columns somebody wants to see, kept in this browser.
export type ColumnId = "choose" | "name" | "words" | "next" | "recent" | "duration" | "labels" | "owner" | "menu";

/** Those that may be hidden, with what they are called. */
export const HIDEABLE: readonly (readonly [id: ColumnId, text: string])[] = [
  ["words", "When, in words"],
  ["next", "Next"],
  ["recent", "Last 30 occurrences"],
  ["duration", "Duration, below the last 30"],
  ["labels", "Labels"],
  ["owner", "Owner"],
];

export const COLUMNS_KEY = "horarium.schedules.columns";
const HIDDEN_AT_FIRST: readonly ColumnId[] = ["owner"];

/** Whatever is kept there, what can be read of it: the ids of those that are hidden. */
export function hiddenOf(kept: string | null): ColumnId[] {
  if (kept === null) return [...HIDDEN_AT_FIRST];
  const named = kept.split(",");
  return HIDEABLE.map(([id]) => id).filter((id) => named.includes(id));
}

export function withHidden(hidden: readonly ColumnId[], id: ColumnId, isHidden: boolean): ColumnId[] {
  return HIDEABLE.map(([each]) => each).filter((each) => (each === id ? isHidden : hidden.includes(each)));
}
