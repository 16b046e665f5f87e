// How often each word stands in a list, the most frequent first.
export type Counts = ReadonlyMap<string, number>;

export function addedTo(before: Counts, words: readonly string[]): Counts {
  const found = new Map(before);
  for (const word of words) found.set(word, (found.get(word) ?? 0) + 1);
  return found;
}

export function mostFirst(counts: Counts): [word: string, many: number][] {
  return [...counts].sort(([one, many], [other, more]) => more - many || one.localeCompare(other));
}

export function counted(words: readonly string[]): [word: string, many: number][] {
  return mostFirst(addedTo(new Map(), words));
}
