// The edited document: read and change it by path, and compute the request that saves it.
import { mergePatch, sameJson } from "../parts/jsonInput";

export type Json = null | boolean | number | bigint | string | Json[] | { [name: string]: Json };
export type Doc = { [name: string]: Json };
export type Path = readonly (string | number)[];

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function getAt(document: Doc, path: Path): Json | undefined {
  let found: Json | undefined = document;
  for (const step of path) {
    if (Array.isArray(found)) found = found[Number(step)];
    else if (isObject(found)) found = found[step];
    else return undefined;
  }
  return found;
}

/** The value as the text of an input; values other than strings and numbers as JSON. */
export function asText(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A copy with this value at the path; undefined removes it, and parents that become empty. */
export function setAt(document: Doc, path: Path, value: Json | undefined): Doc {
  const [step, ...rest] = path;
  if (step === undefined) return document;
  const below = document[step as string];
  const next = rest.length === 0 ? value : changedPart(below, rest, value);
  const { [step as string]: _, ...others } = document;
  return next === undefined ? others : { ...document, [step as string]: next };
}

function changedPart(part: Json | undefined, path: Path, value: Json | undefined): Json | undefined {
  const step = path[0];
  // An object replaces a list in its place.
  if (Array.isArray(part) && typeof step === "number") {
    const inner = path.length === 1 ? value : changedPart(part[step], path.slice(1), value);
    const next =
      inner === undefined ? part.filter((_, place) => place !== step) : Object.assign([...part], { [step]: inner });
    return next.length === 0 ? undefined : next;
  }
  const next = setAt(isObject(part) ? part : {}, path, value);
  return value === undefined && Object.keys(next).length === 0 ? undefined : next;
}

/** The merge patch between two documents; null if none exists, since null in a patch removes a field. */
export function patchOf(before: Doc, after: Doc): Doc | null {
  const found = mergePatch(before, after);
  return found === null ? null : (found.patch as Doc);
}

/** Apply the changes since `before` to the current document; null if no patch exists. */
export function onTop(theirs: Doc, before: Doc, mine: Doc): Doc | null {
  const patch = patchOf(before, mine);
  return patch === null ? null : (merged(theirs, patch) as Doc);
}

/** Apply a merge patch (RFC 7396). */
function merged(value: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const made: [string, Json][] = Object.entries(isObject(value) ? value : {}).filter(
    ([name]) => !Object.hasOwn(patch, name),
  );
  const old = new Map(isObject(value) ? Object.entries(value) : []);
  for (const [name, each] of Object.entries(patch)) if (each !== null) made.push([name, merged(old.get(name), each)]);
  return Object.fromEntries(made);
}

export interface Change {
  /**
   * PATCH merges and removes by null. PUT replaces the fields that it names. PUT of the whole document also removes
   * the fields that it does not name.
   */
  how: "merge" | "parts" | "whole";
  body: Doc;
}

// Kept if a whole document does not name it, removed by null.
const SPOKEN_OF = "note";

/** The smallest request that changes one document into the other. */
export function changeOf(before: Doc, after: Doc): Change {
  const patch = patchOf(before, after);
  if (patch !== null) return { how: "merge", body: patch };
  const body = partsOf(before, after);
  if (body !== null) return { how: "parts", body };
  const isGone = Object.hasOwn(before, SPOKEN_OF) && !Object.hasOwn(after, SPOKEN_OF);
  return { how: "whole", body: isGone ? { ...after, [SPOKEN_OF]: null } : after };
}

// An action is merged key by key; a spec without jitter keeps it.
const MERGED_BY_KEY = "action";
const KEPT: Readonly<Record<string, string>> = { spec: "jitter_seconds" };

/** The body of a PUT; null if a field must be removed, which PUT cannot do. */
function partsOf(before: Doc, after: Doc): Doc | null {
  const body: Doc = {};
  if (Object.keys(before).some((name) => !Object.hasOwn(after, name))) return null;
  for (const [name, value] of Object.entries(after)) {
    const old = before[name];
    if (sameJson(old, value)) continue;
    const merges = name === MERGED_BY_KEY && isObject(old) && isObject(value);
    const part = merges ? partsOf(old, value) : value;
    if (part === null || losesKept(name, old, value)) return null;
    body[name] = part;
  }
  return body;
}

function losesKept(name: string, old: Json | undefined, value: Json): boolean {
  const kept = KEPT[name];
  return kept !== undefined && isObject(old) && isObject(value) && kept in old && !(kept in value);
}

/** The errors of a field, at its path or below it (`spec.cron_expressions[0]`). */
export function errorsAt(errors: Readonly<Record<string, string[]>>, path: string): string[] {
  return Object.entries(errors)
    .filter(([name]) => name === path || name.startsWith(`${path}.`) || name.startsWith(`${path}[`))
    .flatMap(([, texts]) => texts);
}
