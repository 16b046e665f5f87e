import { beforeAll, expect, test } from "vitest";
import { fromText, loadYaml, toText } from "./text";

beforeAll(loadYaml);

const DOCUMENT = { name: "a: b", spec: { cron_expressions: ["0 9 * * *"], at: [] }, deep: { yes: "no", n: 1.5 } };

test.each(["json", "yaml"] as const)("what is written as %s is read as it was", (format) => {
  expect(fromText(toText(DOCUMENT, format), format)).toEqual({ document: DOCUMENT });
});

test.each([
  ["{", "json"],
  ["[1]", "json"],
  ["a: [", "yaml"],
  ["just words", "yaml"],
  ["", "yaml"],
] as const)("%j is no document of %s, and it is said why", (text, format) => {
  expect(fromText(text, format)).toHaveProperty("wrong");
});
