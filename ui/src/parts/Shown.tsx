// What stands where an answer will be: that it is coming, why it does not come, or the answer.
import type { ReactNode } from "react";
import { Refused } from "../api/client";
import { Button } from "./Button";

export function Loading({ text = "Loading…" }: { text?: string }) {
  return (
    <div className="loading" role="status">
      <span className="spinner" aria-hidden="true" />
      {text}
    </div>
  );
}

/** In the service's own words, with the fields that it names. */
export function FailureNote({ failure, again }: { failure: Error; again?: () => void }) {
  const errors = failure instanceof Refused ? Object.entries(failure.errors) : [];
  return (
    <div className="note tone-bad" role="alert">
      <div className="stack grow">
        <div>{failure.message}</div>
        {errors.length > 0 ? (
          <ul>
            {errors.slice(0, 20).map(([field, texts]) => (
              <li key={field}>
                <code>{field}</code>: {texts.join(" · ")}
              </li>
            ))}
          </ul>
        ) : null}
      </div>
      {again ? (
        <Button small onClick={again}>
          Try again
        </Button>
      ) : null}
    </div>
  );
}

/** What was asked for, in pages or at once. */
export interface Asked<T> {
  data: T | undefined;
  error: Error | null;
  refetch: () => unknown;
}

interface ShownProps<T> {
  of: Asked<T>;
  children: (answer: T) => ReactNode;
  loading?: ReactNode;
  /** Where the answer is a whole page: what stands around the note in its place. */
  around?: (note: ReactNode) => ReactNode;
}

/** What came before stays when a later question fails, and the failure is told; a lost connection has its banner. */
export function Shown<T>({ of, children, loading, around = (note) => note }: ShownProps<T>) {
  const again = () => void of.refetch();
  if (of.data === undefined)
    return around(of.error ? <FailureNote failure={of.error} again={again} /> : (loading ?? <Loading />));
  return (
    <>
      {of.error instanceof Refused ? <FailureNote failure={of.error} again={again} /> : null}
      {children(of.data)}
    </>
  );
}

/** An empty list that says what would be in it, and how to get there. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
