// Read and write JSON without loss: an integer beyond the precision of a double is a BigInt.

type Raw = (text: string) => unknown;
const raw: Raw = (JSON as { rawJSON?: Raw }).rawJSON ?? Number;

Object.defineProperty(BigInt.prototype, "toJSON", {
  value(this: bigint) {
    return raw(String(this));
  },
});

// Checking every value costs more than parsing, and few texts have such a number.
const MAY_BE_LOST = /\d{16}|[eE]\+?\d{3}/;

export function readJson(text: string): unknown {
  return MAY_BE_LOST.test(text) ? JSON.parse(text, kept) : JSON.parse(text);
}

/** Browsers before 2025 do not pass the source text: they keep the nearest double. */
function kept(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  if (!Number.isFinite(value)) throw new SyntaxError("number too large");
  return /^-?\d+$/.test(context?.source ?? "") ? BigInt(context!.source!) : value;
}
