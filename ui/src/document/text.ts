// The document as text, in JSON or YAML, and back. YAML is loaded when somebody wants it.
import { readJson } from "../api/json";
import { isObject, type Doc } from "./document";

export type Format = "json" | "yaml";
export type Parsed = { document: Doc } | { wrong: string };

type Yaml = typeof import("yaml");
let yaml: Yaml | null = null;

// A number that is no double is a BigInt here, and made a number again below, where it is one.
const YAML_OPTIONS = { maxAliasCount: 20, intAsBigInt: true };

export async function loadYaml(): Promise<void> {
  yaml ??= await import("yaml");
}

export function toText(document: Doc, format: Format): string {
  if (format === "yaml" && yaml !== null) return yaml.stringify(document, { lineWidth: 100 });
  return `${JSON.stringify(document, null, 2)}\n`;
}

export function fromText(text: string, format: Format): Parsed {
  try {
    const found: unknown = format === "yaml" && yaml !== null ? yaml.parse(text, YAML_OPTIONS) : readJson(text);
    if (!isObject(found)) return { wrong: "the text must be an object with fields" };
    return { document: readJson(JSON.stringify(found, finite)) as Doc };
  } catch (broken) {
    return {
      wrong: broken instanceof Error ? (broken.message.split("\n")[0] ?? "it cannot be read") : "it cannot be read",
    };
  }
}

/** YAML has `.inf` and `.nan`; JSON would make a null of them. */
function finite(_name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${value} is no number of a document`);
  return value;
}
