// Replaces an invalid browser language, because uPlot creates a date format when it loads.

interface Speaking {
  language: string;
}

/** A machine without a locale (`LANG=C`) reports `en-US@posix`, which is invalid (RFC 5646). */
export function makeSpeakable(speaking: Speaking = navigator): void {
  try {
    Intl.getCanonicalLocales(speaking.language);
  } catch {
    Object.defineProperty(speaking, "language", { value: "en-GB", configurable: true });
  }
}
