import { expect, test } from "vitest";
import { readJson } from "./json";

test.each([
  '{"id":1190987654321098765}',
  "[-9223372036854775808,9223372036854775807]",
  '{"small":1,"half":0.5,"text":"1190987654321098765","none":null}',
  "9007199254740993",
])("%s is written as it was read", (text) => {
  expect(JSON.stringify(readJson(text))).toBe(text);
});

test.each([
  ["9007199254740991", 9007199254740991],
  ["0.12345678901234567", 0.12345678901234566],
  ["1e21", 1e21],
  ["9007199254740993", 9007199254740993n],
])("%s is the same number", (text, value) => {
  expect(readJson(text)).toBe(value);
});

test.each(["1e400", "{", ""])("%j cannot be read", (text) => {
  expect(() => readJson(text)).toThrow(SyntaxError);
});
