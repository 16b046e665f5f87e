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
  ["a: 1e400", "yaml"],
  ["a: 1\na: 2", "yaml"],
  ["a: !!binary aGk=", "yaml"],
  ["a: !mine b", "yaml"],
  ["? [1]\n: b", "yaml"],
  ["a: 1\n---\nb: 2", "yaml"],
  [`a: &a [x]\nb: &b [${"*a, ".repeat(9)}*a]\nc: [${"*b, ".repeat(9)}*b]`, "yaml"],
  ['{"a": 1e400}', "json"],
] as const)("%j is no document of %s, and it is said why", (text, format) => {
  expect(fromText(text, format)).toHaveProperty("wrong");
});

test("words mean in YAML what they mean on the command line", () => {
  const text = `
text: [on, No, 12:30, 2026-03-08, 0x1F, 0o17, 1_000, +1, .5, .inf, True, NULL, "null"]
numbers: [-0, 7, 1.5, 2e3]
others: [true, null, ~, ]
1: a name is text
__proto__: so is this
base: &base {kind: pull, queue: q}
merged: {<<: *base, queue: own}
`;
  const { document } = fromText(text, "yaml") as { document: Record<string, unknown> };
  expect(JSON.stringify(document)).toBe(
    JSON.stringify({
      "1": "a name is text",
      text: [
        ...["on", "No", "12:30", "2026-03-08", "0x1F", "0o17", "1_000", "+1", ".5", ".inf", "True", "NULL", "null"],
      ],
      numbers: [0, 7, 1.5, 2000],
      others: [true, null, null],
      ["__proto__"]: "so is this",
      base: { kind: "pull", queue: "q" },
      merged: { kind: "pull", queue: "own" },
    }),
  );
});

test("a name that comes twice is found where it is", () => {
  expect(fromText("a: 1\nb:\n  - c: 1\n    d: 2\n    c: 3\n", "yaml")).toEqual({
    wrong: 'Duplicate key "c" in line 5',
  });
});

test("what another reader of YAML could take for something else is written in quotes", () => {
  const written = toText({ a: "no", b: "12:30", c: "2026-03-08", d: "0 9 * * *" }, "yaml");
  expect(written).toBe('a: "no"\nb: "12:30"\nc: "2026-03-08"\nd: 0 9 * * *\n');
});

test.each(["json", "yaml"] as const)("a long number keeps its digits in %s", (format) => {
  const document = { input: { id: 1190987654321098765n, count: 3 } };
  expect(toText(document, format)).toContain("1190987654321098765");
  expect(fromText(toText(document, format), format)).toEqual({ document });
});
