// The document as text, in JSON or YAML, and back. YAML is loaded when somebody wants it.
//
// YAML is read as the command line reads it: as JSON written by hand. A word is a number, a truth or nothing only where
// JSON says so, and text everywhere else; marks of types are refused, and an object may be merged into another (<<).
import type { Pair, Scalar, ScalarTag } from "yaml";
import { readJson } from "../api/json";
import { isObject, type Doc } from "./document";

export type Format = "json" | "yaml";
export type Parsed = { document: Doc } | { wrong: string };

type Yaml = typeof import("yaml");
let yaml: Yaml | null = null;

const TAG = "tag:yaml.org,2002:";
const WORDS: ScalarTag[] = [
  { default: true, tag: `${TAG}null`, test: /^(?:null|~|)$/, resolve: () => null },
  { default: true, tag: `${TAG}bool`, test: /^(?:true|false)$/, resolve: (word) => word === "true" },
  // A number that is no double is a BigInt here, and made a number again below, where it is one.
  { default: true, tag: `${TAG}int`, test: /^-?(?:0|[1-9][0-9]*)$/, resolve: (word) => BigInt(word) },
  {
    default: true,
    tag: `${TAG}float`,
    test: /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/,
    resolve: (word) => Number(word),
  },
];
// Names that come twice are looked for below: the library compares each with each, which takes seconds in a large text.
const READING = {
  schema: "failsafe",
  customTags: WORDS,
  resolveKnownTags: false,
  merge: true,
  stringKeys: true,
  uniqueKeys: false,
} as const;
const MOST_REPETITIONS = 20;
// In quotes wherever a reader of any version could take it for something else than text.
const WRITING = { lineWidth: 100, compat: "yaml-1.1" } as const;

export async function loadYaml(): Promise<void> {
  yaml ??= await import("yaml");
}

export function toText(document: Doc, format: Format): string {
  if (format === "yaml" && yaml !== null) return yaml.stringify(document, WRITING);
  return `${JSON.stringify(document, null, 2)}\n`;
}

export function fromText(text: string, format: Format): Parsed {
  try {
    const found = format === "yaml" && yaml !== null ? readYaml(yaml, text) : readJson(text);
    if (!isObject(found)) return { wrong: "Expected an object with fields." };
    return { document: readJson(JSON.stringify(found, finite)) as Doc };
  } catch (broken) {
    return {
      wrong: broken instanceof Error ? (broken.message.split("\n")[0] ?? "Syntax error") : "Syntax error",
    };
  }
}

function readYaml(by: Yaml, text: string): unknown {
  const read = by.parseDocument(text, READING);
  const wrong = read.errors[0] ?? read.warnings[0];
  if (wrong !== undefined) throw wrong;
  by.visit(read, { Map: (_, { items }) => refuseTwice(items, text) });
  return read.toJS({ maxAliasCount: MOST_REPETITIONS });
}

/** Reject duplicate keys, except the merge key (<<), of which the first one counts. */
function refuseTwice(pairs: readonly Pair[], text: string): void {
  const seen = new Set<unknown>();
  for (const { key } of pairs as readonly Pair<Scalar>[]) {
    const name = key.value;
    if (name !== "<<" && seen.has(name)) {
      const line = text.slice(0, key.range?.[0]).split("\n").length;
      throw new Error(`Duplicate key ${JSON.stringify(name)} in line ${line}`);
    }
    seen.add(name);
  }
}

/** Reject infinite numbers, which JSON would turn into null. */
function finite(_name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${value} is not a valid number.`);
  return value;
}
