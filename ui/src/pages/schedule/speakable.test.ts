import { expect, test } from "vitest";
import { makeSpeakable } from "./speakable";

test.each([
  ["tr-TR", "tr-TR"],
  ["en-US@posix", "en-GB"],
])("who names %s speaks %s", (named, language) => {
  const speaking = { language: named };
  makeSpeakable(speaking);
  expect(new Intl.NumberFormat(speaking.language).resolvedOptions().locale).toBe(language);
});
