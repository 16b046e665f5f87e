// Isolate a name inside plain text, where no <bdi> is possible, so that it cannot reorder the text around it.

const FIRST_STRONG = "\u2068";
const POP = "\u2069";
const OPENS = /[\u2066-\u2068]/;
// Right-to-left letters and bidirectional control characters.
const TURNS =
  /[\p{Bidi_Control}\u{590}-\u{8ff}\u{fb1d}-\u{fdff}\u{fe70}-\u{fefc}\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Return the text unchanged if it is left-to-right, else wrapped in isolates (Unicode Standard Annex 9). */
export function isolated(name: string): string {
  if (!TURNS.test(name)) return name;
  let [open, tooMany] = [0, 0];
  for (const each of name) {
    if (OPENS.test(each)) open += 1;
    else if (each === POP && open > 0) open -= 1;
    else if (each === POP) tooMany += 1;
  }
  return FIRST_STRONG.repeat(1 + tooMany) + name + POP.repeat(1 + open);
}
