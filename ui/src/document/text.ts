// The document as text, in JSON or YAML, and back. YAML is loaded when somebody wants it.
import { isObject, type Doc } from "./document";

export type Format = "json" | "yaml";
export type Parsed = { document: Doc } | { wrong: string };

type Yaml = typeof import("yaml");
let yaml: Yaml | null = null;

export async function loadYaml(): Promise<void> {
  yaml ??= await import("yaml");
}

export function toText(document: Doc, format: Format): string {
  if (format === "yaml" && yaml !== null) return yaml.stringify(document, { lineWidth: 100 });
  return `${JSON.stringify(document, null, 2)}\n`;
}

export function fromText(text: string, format: Format): Parsed {
  try {
    const found: unknown =
      format === "yaml" && yaml !== null ? yaml.parse(text, { maxAliasCount: 20 }) : JSON.parse(text);
    if (!isObject(found)) return { wrong: "the text must be an object with fields" };
    return { document: JSON.parse(JSON.stringify(found)) as Doc };
  } catch (broken) {
    return {
      wrong: broken instanceof Error ? (broken.message.split("\n")[0] ?? "it cannot be read") : "it cannot be read",
    };
  }
}
