// Parse JSON input with error messages, compare values and compute merge patches. Pure functions.
import { readJson } from "../api/json";

export type ReadJson = { ok: true; value: unknown } | { ok: false; message: string };

export function parseJson(text: string): ReadJson {
  if (text.trim() === "") return { ok: false, message: "Enter a JSON value. For an empty value, enter null." };
  try {
    return { ok: true, value: readJson(text) };
  } catch (wrong) {
    return { ok: false, message: `Invalid JSON: ${wrong instanceof Error ? wrong.message : String(wrong)}` };
  }
}

export function sameJson(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (!isObject(one) || !isObject(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((each, index) => sameJson(each, other[index]));
  }
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && sameJson(one[name], other[name]))
  );
}

/** The merge patch (RFC 7396) from `before` to `after`; null if none exists, since null in a patch removes a field. */
export function mergePatch(before: unknown, after: unknown): { patch: unknown } | null {
  if (!isObject(after)) return { patch: after };
  const old = isObject(before) ? before : {};
  const patch: [string, unknown][] = Object.keys(old)
    .filter((name) => !Object.hasOwn(after, name))
    .map((name) => [name, null]);
  for (const [name, value] of Object.entries(after)) {
    const known = Object.hasOwn(old, name);
    if (known && sameJson(old[name], value)) continue;
    if (value === null) return null;
    const below = mergePatch(known ? old[name] : undefined, value);
    if (below === null) return null;
    patch.push([name, below.patch]);
  }
  return { patch: Object.fromEntries(patch) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
