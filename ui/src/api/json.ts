// Reads JSON without loss: a whole number that no double holds is a BigInt, and is written again as it was.

type Raw = (text: string) => unknown;
const raw: Raw = (JSON as { rawJSON?: Raw }).rawJSON ?? Number;

Object.defineProperty(BigInt.prototype, "toJSON", {
  value(this: bigint) {
    return raw(String(this));
  },
});

// To look at every value costs more than to read the text, and few texts have such a number.
const MAY_BE_LOST = /\d{16}|[eE]\+?\d{3}/;

export function readJson(text: string): unknown {
  return MAY_BE_LOST.test(text) ? JSON.parse(text, kept) : JSON.parse(text);
}

/** Browsers before 2025 do not tell what stood there: they go on with the nearest number that they have. */
function kept(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  if (!Number.isFinite(value)) throw new SyntaxError("number too large");
  return /^-?\d+$/.test(context?.source ?? "") ? BigInt(context!.source!) : value;
}
