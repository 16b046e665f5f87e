// Parse the text format of Prometheus.

export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

// A service with many namespaces returns a few thousand lines. Further lines are ignored.
const MOST_LINES = 20_000;
const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?$/;
const LABEL = /([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** Return the samples and ignore other lines. */
export function parsed(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n", MOST_LINES)) {
    const found = line.startsWith("#") ? null : LINE.exec(line.trim());
    if (found === null) continue;
    const value = numberOf(found[3]!);
    if (value === null) continue;
    samples.push({ name: found[1]!, labels: labelsOf(found[2] ?? ""), value });
  }
  return samples;
}

function labelsOf(text: string): Record<string, string> {
  const labels = Object.create(null) as Record<string, string>;
  for (const [, name, value] of text.matchAll(LABEL))
    labels[name!] = value!.replace(/\\(.)/g, (_, each: string) => (each === "n" ? "\n" : each));
  return labels;
}

function numberOf(text: string): number | null {
  if (text === "+Inf" || text === "Inf") return Infinity;
  if (text === "-Inf") return -Infinity;
  const value = Number(text);
  return Number.isNaN(value) ? null : value;
}

/** Sum the samples of a name; null = none. */
export function total(samples: readonly Sample[], name: string): number | null {
  const own = samples.filter((each) => each.name === name);
  return own.length === 0 ? null : own.reduce((sum, each) => sum + each.value, 0);
}

/** Sum by the value of one label, largest first, without zeros. */
export function byLabel(samples: readonly Sample[], name: string, label: string): [string, number][] {
  const sums = new Map<string, number>();
  for (const each of samples) {
    if (each.name === name && each.value !== 0)
      sums.set(each.labels[label] ?? "", (sums.get(each.labels[label] ?? "") ?? 0) + each.value);
  }
  return [...sums].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
}

/** Return the bucket bound of a quantile; null = no data, Infinity = above the last bound. */
export function boundOf(samples: readonly Sample[], name: string, share: number): number | null {
  const sums = new Map<number, number>();
  for (const each of samples) {
    if (each.name !== `${name}_bucket`) continue;
    const bound = numberOf(each.labels["le"] ?? "");
    if (bound !== null) sums.set(bound, (sums.get(bound) ?? 0) + each.value);
  }
  const buckets = [...sums].sort((one, other) => one[0] - other[0]);
  const all = buckets.at(-1)?.[1] ?? 0;
  return all === 0 ? null : (buckets.find(([, many]) => many >= share * all)?.[0] ?? null);
}
