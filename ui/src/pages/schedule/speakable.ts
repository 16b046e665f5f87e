// A language that the browser names and can speak: uPlot makes a format of it when it is loaded, whether or not it is used.

interface Speaking {
  language: string;
}

/** A machine without a locale (`LANG=C`) names `en-US@posix`, which is none (RFC 5646). */
export function makeSpeakable(speaking: Speaking = navigator): void {
  try {
    Intl.getCanonicalLocales(speaking.language);
  } catch {
    Object.defineProperty(speaking, "language", { value: "en-GB", configurable: true });
  }
}
