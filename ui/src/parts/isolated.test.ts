import { expect, it } from "vitest";
import { isolated } from "./isolated";

it.each([
  ["a plain name", "Nightly report", "Nightly report"],
  ["accents and other scripts that run the same way", "Übersicht 日本 e\u0301", "Übersicht 日本 e\u0301"],
  ["markup", "<b>", "<b>"],
  ["letters from right to left", "שלום", "\u2068שלום\u2069"],
  ["an override without an end", "\u202eabc", "\u2068\u202eabc\u2069"],
  ["one that ends what it did not begin", "a\u2069b", "\u2068\u2068a\u2069b\u2069"],
  ["one that does not end what it began", "\u2067a", "\u2068\u2067a\u2069\u2069"],
  ["a pair", "\u2067a\u2069", "\u2068\u2067a\u2069\u2069"],
])("%s", (_, name, told) => expect(isolated(name)).toBe(told));
