// The idempotency key of a write: a retry after a lost answer has the same key.

export interface Wish {
  text: string;
  key: string;
}

/** `before` is the unanswered write; the same write again reuses its key. */
export function wishOf(before: Wish | null, given: unknown, fresh: () => string): Wish {
  const text = JSON.stringify(given);
  return before?.text === text ? before : { text, key: fresh() };
}

/** A unique key; `randomUUID` is not available without TLS. */
export function freshKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
