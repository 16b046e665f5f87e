import { expect, test } from "vitest";
import { makeSpeakable } from "./speakable";

test.each([
  ["tr-TR", "tr-TR"],
  ["en-US@posix", "en-GB"],
])("%s becomes %s", (named, language) => {
  const speaking = { language: named };
  makeSpeakable(speaking);
  expect(new Intl.NumberFormat(speaking.language).resolvedOptions().locale).toBe(language);
});
