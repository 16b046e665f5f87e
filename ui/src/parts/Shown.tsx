// The states of a request: loading, failed, or its answer.
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

/** The message of the service, with the errors of each field. */
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
          Retry
        </Button>
      ) : null}
    </div>
  );
}

/** A query, paged or not. */
export interface Asked<T> {
  data: T | undefined;
  error: Error | null;
  refetch: () => unknown;
}

interface ShownProps<T> {
  of: Asked<T>;
  children: (answer: T) => ReactNode;
  loading?: ReactNode;
  /** Wraps the failure note when the answer would be a whole page. */
  around?: (note: ReactNode) => ReactNode;
}

/** Keep the last answer when a later request fails, and show the failure. A lost connection has its own banner. */
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

/** The empty state of a list. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
