// The document that is edited: read and changed by path, and what must be sent to make one out of another.
import { mergePatch } from "../parts/jsonInput";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Doc = { [name: string]: Json };
export type Path = readonly (string | number)[];

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function getAt(document: Doc, path: Path): Json | undefined {
  let found: Json | undefined = document;
  for (const step of path) {
    if (Array.isArray(found)) found = found[Number(step)];
    else if (isObject(found)) found = (found as Doc)[step];
    else return undefined;
  }
  return found;
}

/** A copy with this value at the path; undefined takes it away, and parts that are empty thereby go too. */
export function setAt(document: Doc, path: Path, value: Json | undefined): Doc {
  const [step, ...rest] = path;
  if (step === undefined) return document;
  const below = document[step as string];
  const next = rest.length === 0 ? value : changedPart(below, rest, value);
  const { [step as string]: _, ...others } = document;
  return next === undefined ? others : { ...document, [step as string]: next };
}

function changedPart(part: Json | undefined, path: Path, value: Json | undefined): Json | undefined {
  if (Array.isArray(part)) {
    const index = Number(path[0]);
    const inner = path.length === 1 ? value : changedPart(part[index], path.slice(1), value);
    const next =
      inner === undefined ? part.filter((_, place) => place !== index) : Object.assign([...part], { [index]: inner });
    return next.length === 0 ? undefined : next;
  }
  const next = setAt(isObject(part) ? (part as Doc) : {}, path, value);
  return value === undefined && Object.keys(next).length === 0 ? undefined : next;
}

/** What must be sent to make one out of the other, as a merge patch; null where none can, since null takes away. */
export function patchOf(before: Doc, after: Doc): Doc | null {
  const found = mergePatch(before, after);
  return found === null ? null : (found.patch as Doc);
}

/** What the service says is wrong with a field: at its own path, or at one below it (`spec.cron_expressions[0]`). */
export function errorsAt(errors: Readonly<Record<string, string[]>>, path: string): string[] {
  return Object.entries(errors)
    .filter(([name]) => name === path || name.startsWith(`${path}.`) || name.startsWith(`${path}[`))
    .flatMap(([, texts]) => texts);
}
