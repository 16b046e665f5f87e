// The document that is edited: read and changed by path, and what must be sent to make one out of another.
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
    else if (isObject(found)) found = (found as Doc)[step];
    else return undefined;
  }
  return found;
}

/** As an input shows it; what is no text and no number, and so in the wrong place, as JSON. */
export function asText(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
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
  const step = path[0];
  // A list that stands where fields belong gives way to them.
  if (Array.isArray(part) && typeof step === "number") {
    const inner = path.length === 1 ? value : changedPart(part[step], path.slice(1), value);
    const next =
      inner === undefined ? part.filter((_, place) => place !== step) : Object.assign([...part], { [step]: inner });
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

/** What somebody made out of `before`, made out of what it has become meanwhile; null where no patch can say it. */
export function onTop(theirs: Doc, before: Doc, mine: Doc): Doc | null {
  const patch = patchOf(before, mine);
  return patch === null ? null : (merged(theirs, patch) as Doc);
}

/** A merge patch, applied (RFC 7396). */
function merged(value: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const made: [string, Json][] = Object.entries(isObject(value) ? (value as Doc) : {}).filter(
    ([name]) => !Object.hasOwn(patch, name),
  );
  const old = new Map(isObject(value) ? Object.entries(value as Doc) : []);
  for (const [name, each] of Object.entries(patch as Doc))
    if (each !== null) made.push([name, merged(old.get(name), each)]);
  return Object.fromEntries(made);
}

export interface Change {
  /**
   * PATCH, which merges and takes away by null; PUT, which replaces the parts that it names and takes nothing away; or
   * PUT of the whole, which takes away what it does not name.
   */
  how: "merge" | "parts" | "whole";
  body: Doc;
}

// It stays where a whole document is silent about it, and goes where that says null.
const SPOKEN_OF = "note";

/** What must be sent to make one out of the other: as little as can say it. */
export function changeOf(before: Doc, after: Doc): Change {
  const patch = patchOf(before, after);
  if (patch !== null) return { how: "merge", body: patch };
  const body = partsOf(before, after);
  if (body !== null) return { how: "parts", body };
  const isGone = Object.hasOwn(before, SPOKEN_OF) && !Object.hasOwn(after, SPOKEN_OF);
  return { how: "whole", body: isGone ? { ...after, [SPOKEN_OF]: null } : after };
}

// An action is merged key by key; jitter stays where a spec does not name it.
const MERGED_BY_KEY = "action";
const KEPT: Readonly<Record<string, string>> = { spec: "jitter_seconds" };

/** Of a PUT; null where a part would have to go, which it cannot say. */
function partsOf(before: Doc, after: Doc): Doc | null {
  const body: Doc = {};
  if (Object.keys(before).some((name) => !Object.hasOwn(after, name))) return null;
  for (const [name, value] of Object.entries(after)) {
    const old = before[name];
    if (sameJson(old, value)) continue;
    const merges = name === MERGED_BY_KEY && isObject(old) && isObject(value);
    const part = merges ? partsOf(old as Doc, value as Doc) : value;
    if (part === null || losesKept(name, old, value)) return null;
    body[name] = part;
  }
  return body;
}

function losesKept(name: string, old: Json | undefined, value: Json): boolean {
  const kept = KEPT[name];
  return kept !== undefined && isObject(old) && isObject(value) && kept in old && !(kept in value);
}

/** What the service says is wrong with a field: at its own path, or at one below it (`spec.cron_expressions[0]`). */
export function errorsAt(errors: Readonly<Record<string, string[]>>, path: string): string[] {
  return Object.entries(errors)
    .filter(([name]) => name === path || name.startsWith(`${path}.`) || name.startsWith(`${path}[`))
    .flatMap(([, texts]) => texts);
}
