// Selection of rows: some of the loaded rows, or all that match the filters.
export interface Selection {
  ids: ReadonlySet<string>;
  /** All that match the filters, including rows not loaded. */
  everything: boolean;
  /** First row of a range. */
  anchor: string | null;
}

export const NONE_CHOSEN: Selection = { ids: new Set(), everything: false, anchor: null };

/** Toggle one row; with `range`, apply the new state to all rows since the anchor. */
export function toggled(selection: Selection, rows: readonly string[], id: string, range: boolean): Selection {
  const ids = new Set(selection.everything ? rows : selection.ids);
  const becomes = !ids.has(id);
  const [from, to] = [range && selection.anchor !== null ? rows.indexOf(selection.anchor) : -1, rows.indexOf(id)];
  const touched = from < 0 || to < 0 ? [id] : rows.slice(Math.min(from, to), Math.max(from, to) + 1);
  for (const each of touched) {
    if (becomes) ids.add(each);
    else ids.delete(each);
  }
  return { ids, everything: false, anchor: id };
}

/** Select all loaded rows, or none if all are selected. */
export function allToggled(selection: Selection, rows: readonly string[]): Selection {
  return isAll(selection, rows) ? NONE_CHOSEN : { ids: new Set(rows), everything: false, anchor: null };
}

export function isAll(selection: Selection, rows: readonly string[]): boolean {
  return rows.length > 0 && (selection.everything || rows.every((each) => selection.ids.has(each)));
}

export function isChosen(selection: Selection, id: string): boolean {
  return selection.everything || selection.ids.has(id);
}

export function hasAny(selection: Selection): boolean {
  return selection.everything || selection.ids.size > 0;
}
