// The head of a page (title, summary, actions), cards and lists of facts.
import { useEffect, useRef, type ReactNode } from "react";
import { takeFromContent } from "./focus";

interface Props {
  title: string;
  /** Shown above the title, such as a back link. */
  above?: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

export function Page({ title, above, about, actions, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Horarium`;
  }, [title]);
  useEffect(() => takeFromContent(heading.current), []);
  return (
    <>
      <div className="page-head">
        <div className="stack">
          {above}
          <h1 ref={heading} tabIndex={-1}>
            {title}
          </h1>
          {about ? <div className="muted">{about}</div> : null}
        </div>
        {actions ? <div className="actions">{actions}</div> : null}
      </div>
      {children}
    </>
  );
}

export function Card({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="card" aria-label={title}>
      <div className="card-head">
        <h2>{title}</h2>
        {actions ? <div className="row">{actions}</div> : null}
      </div>
      {children}
    </section>
  );
}

/** The id behind a display name; nothing where the id itself is shown. */
export function SecondaryId({ name, id }: { name?: string | null; id: string }) {
  if (!name || name === id) return null;
  return (
    <span className="muted small mono">
      {" "}
      <bdi>{id}</bdi>
    </span>
  );
}

/** A list of names and values. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className="facts">
      {of.map(([name, value]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
