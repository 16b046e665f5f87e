// Which key a write carries: the same wish, sent again because its answer was lost, is the same request.

export interface Wish {
  text: string;
  key: string;
}

/** `before` is what was sent and not answered yet; whoever wishes the same again means that. */
export function wishOf(before: Wish | null, given: unknown, fresh: () => string): Wish {
  const text = JSON.stringify(given);
  return before?.text === text ? before : { text, key: fresh() };
}

/** A name that nobody else has used; not `randomUUID`, which a page without TLS does not have. */
export function freshKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
