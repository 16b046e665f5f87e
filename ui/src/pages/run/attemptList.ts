// Derive the attempts of a run from its events.
import type { Schemas } from "../../api/client";

type Event = Schemas["RunEvent"];
type Run = Pick<Schemas["Run"], "run_id" | "state" | "started_at" | "finished_at" | "error" | "error_class">;

export interface Attempt {
  number: number;
  started_at: string | null;
  ended_at: string | null;
  /** The outcome; for the last attempt the state of the run. */
  state: Schemas["RunState"];
  error: string | null;
  error_class: string | null;
}

/** `run.started` begins an attempt, `run.retried` ends one, and `run.redelivered` ends one whose worker was lost. */
export function attemptsOf(run: Run, events: readonly Event[]): Attempt[] {
  const attempts: Attempt[] = [];
  let started: string | null = null;
  for (const event of events) {
    if (event.run_id !== run.run_id) continue;
    const word = event.event_type.split(".")[1];
    if (word === "started") started = event.recorded_at;
    if (word !== "retried" && word !== "redelivered") continue;
    const said = event.payload as { error?: unknown; error_class?: unknown };
    attempts.push({
      number: attempts.length + 1,
      started_at: started,
      ended_at: event.recorded_at,
      state: word === "retried" ? "failed" : "unknown",
      error: textOf(said.error),
      error_class: textOf(said.error_class),
    });
    started = null;
  }
  if (run.started_at === null && attempts.length === 0) return [];
  const last = { started_at: started ?? (attempts.length === 0 ? run.started_at : null), ended_at: run.finished_at };
  attempts.push({
    number: attempts.length + 1,
    ...last,
    state: run.state,
    error: run.error,
    error_class: run.error_class,
  });
  return attempts;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
