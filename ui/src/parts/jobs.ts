// Bulk actions that run page by page, apart from the component that started them.

/** The result for one object; `failure` says why nothing was done to it. */
export interface Item {
  id: string;
  name?: string | null;
  outcome: string;
  failure: string | null;
}

export interface JobPage {
  items: readonly Item[];
  isLast: boolean;
  /** The end of the pauses, which the service computes once for all pages. */
  until?: string | null;
}

/** Process the next page; after an error the same page is processed again. */
export type NextPage = (confirm: boolean) => Promise<JobPage>;

export interface Plan {
  /** As on the button: "Delete 12 schedules". */
  title: string;
  kind: "schedule" | "run" | "approval";
  namespace: string;
  /** null = unknown before the last page. */
  total: number | null;
  nextPage: NextPage;
}

export type Phase = "working" | "stopping" | "stopped" | "failed" | "done";

export interface Tally {
  total: number;
  /** Outcomes of the objects that did not fail. */
  counts: Readonly<Record<string, number>>;
  failed: number;
  /** At most MOST_FAILURES_SHOWN of them. */
  failures: readonly Item[];
}

export interface Job extends Plan {
  jobId: number;
  phase: Phase;
  tally: Tally;
  error: Error | null;
  until: string | null;
  /** Its dialog is open and shows the progress, so the status region does not. */
  inDialog: boolean;
}

const MOST_FAILURES_SHOWN = 200;
export const NOTHING_DONE: Tally = { total: 0, counts: {}, failed: 0, failures: [] };

export function tallied(before: Tally, items: readonly Item[]): Tally {
  const failures = items.filter((each) => each.failure !== null);
  const counts: Record<string, number> = { ...before.counts };
  for (const { outcome, failure } of items) if (failure === null) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return {
    total: before.total + items.length,
    counts,
    failed: before.failed + failures.length,
    failures: [...before.failures, ...failures].slice(0, MOST_FAILURES_SHOWN),
  };
}

/** "97 paused, 2 unchanged, 1 failed": the most frequent first, failures last. */
export function tallyText({ counts, failed }: Tally): string {
  const words = Object.entries(counts)
    .sort((one, other) => other[1] - one[1])
    .map(([outcome, many]) => `${many.toLocaleString("en")} ${outcome.replaceAll("_", " ")}`);
  if (failed > 0) words.push(`${failed.toLocaleString("en")} failed`);
  return words.join(", ") || "nothing changed";
}

const LEADS: Readonly<Record<Phase, string>> = {
  working: "In progress",
  stopping: "Stopping",
  stopped: "Stopped",
  failed: "Interrupted",
  done: "Done",
};

export function statusText({ phase, tally }: Pick<Job, "phase" | "tally">): string {
  if (tally.total === 0 && phase !== "done") return LEADS[phase];
  return `${LEADS[phase]}: ${tallyText(tally)}`;
}

export function isActive({ phase }: Pick<Job, "phase">): boolean {
  return phase === "working" || phase === "stopping";
}

/** All jobs of this tab. It outlives pages and dialogs, and ends with the document or the session. */
export class Jobs {
  #all: readonly Job[] = [];
  #latest = 0;
  readonly #listeners = new Set<() => void>();

  constructor(private readonly onEnd: () => void = () => undefined) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  readonly list = (): readonly Job[] => this.#all;

  start(plan: Plan, confirm = false): number {
    const jobId = (this.#latest += 1);
    const begin = { phase: "working", tally: NOTHING_DONE, error: null, until: null, inDialog: true } as const;
    this.#show([...this.#all, { ...plan, ...begin, jobId }]);
    void this.#run(jobId, confirm);
    return jobId;
  }

  /** Continue with the page that was stopped before, or that failed. */
  resume(jobId: number, confirm = false): void {
    const job = this.#find(jobId);
    if (job === undefined || isActive(job) || job.phase === "done") return;
    this.#change(jobId, { phase: "working", error: null });
    void this.#run(jobId, confirm);
  }

  /** Stop after the page that is being processed. */
  stop(jobId: number): void {
    if (this.#find(jobId)?.phase === "working") this.#change(jobId, { phase: "stopping" });
  }

  /** An active job moves to the status region; the dialog has shown the end of any other. */
  closeDialog(jobId: number): void {
    const job = this.#find(jobId);
    if (job && isActive(job)) this.#change(jobId, { inDialog: false });
    else this.dismiss(jobId);
  }

  dismiss(jobId: number): void {
    this.#show(this.#all.filter((each) => each.jobId !== jobId));
  }

  /** End the jobs of a session: a job never continues as another principal. */
  endAll(): void {
    this.#show([]);
  }

  async #run(jobId: number, confirm: boolean): Promise<void> {
    try {
      for (let job = this.#find(jobId); job !== undefined && isActive(job); job = this.#find(jobId)) {
        const page = await job.nextPage(confirm);
        this.#add(jobId, page);
      }
    } catch (error) {
      this.#change(jobId, { phase: "failed", error: error as Error });
    }
    this.onEnd();
  }

  #add(jobId: number, { items, isLast, until }: JobPage): void {
    const job = this.#find(jobId);
    if (job === undefined) return;
    const phase = isLast ? "done" : job.phase === "stopping" ? "stopped" : job.phase;
    this.#change(jobId, { tally: tallied(job.tally, items), phase, until: until ?? job.until });
  }

  #find(jobId: number): Job | undefined {
    return this.#all.find((each) => each.jobId === jobId);
  }

  #change(jobId: number, part: Partial<Job>): void {
    this.#show(this.#all.map((each) => (each.jobId === jobId ? { ...each, ...part } : each)));
  }

  #show(all: readonly Job[]): void {
    this.#all = all;
    for (const listener of this.#listeners) listener();
  }
}
