// Makes src/api/schema.d.ts out of the OpenAPI document on standard input.
//
// It is not committed: each build makes it anew, so code that does not fit the service fails the build.
// What the app does not read is left out first - texts, headers, refusals - since it would be nine tenths of the file.
import { writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const target = fileURLToPath(new URL("../src/api/schema.d.ts", import.meta.url));
const made =
  "// Generated from the OpenAPI document by `make ui`; do not edit.\n" +
  astToString(
    await openapiTS(shortened(JSON.parse(await text(process.stdin))), {
      alphabetize: true,
      emptyObjectsUnknown: true,
      defaultNonNullable: false,
    }),
  );

writeFileSync(target, made);

function shortened(document) {
  const paths = {};
  for (const [path, verbs] of Object.entries(document.paths)) {
    paths[path] = {};
    for (const [verb, operation] of Object.entries(verbs)) {
      paths[path][verb] = {
        parameters: (operation.parameters ?? []).filter((each) => each.in !== "header"),
        requestBody: operation.requestBody,
        responses: Object.fromEntries(
          Object.entries(operation.responses)
            .filter(([status]) => status.startsWith("2"))
            .map(([status, answer]) => [status, { content: answer.content }]),
        ),
      };
    }
  }
  return withoutTexts({ openapi: document.openapi, info: document.info, paths, components: document.components });
}

/** `description`, `example` and `title` are also names of fields: those of `properties` stay. */
function withoutTexts(value, isNames = false) {
  if (Array.isArray(value)) return value.map((each) => withoutTexts(each));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => isNames || !["description", "summary", "example", "examples", "title"].includes(name))
      .map(([name, each]) => [name, withoutTexts(each, !isNames && name === "properties")]),
  );
}
