// Count each word of a list, the most frequent first.
export function counted(words: readonly string[]): [word: string, many: number][] {
  const found = new Map<string, number>();
  for (const word of words) found.set(word, (found.get(word) ?? 0) + 1);
  return [...found].sort(([one, many], [other, more]) => more - many || one.localeCompare(other));
}
