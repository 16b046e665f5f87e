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
  ["a: .inf", "yaml"],
  ['{"a": 1e400}', "json"],
] as const)("%j is no document of %s, and it is said why", (text, format) => {
  expect(fromText(text, format)).toHaveProperty("wrong");
});

test.each(["json", "yaml"] as const)("a long number keeps its digits in %s", (format) => {
  const document = { input: { id: 1190987654321098765n, count: 3 } };
  expect(toText(document, format)).toContain("1190987654321098765");
  expect(fromText(toText(document, format), format)).toEqual({ document });
});
