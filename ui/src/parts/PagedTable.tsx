// A table with pages of rows, a loading state and an empty state.
import type { ReactNode } from "react";
import { LoadMore, type Pages } from "./LoadMore";
import { Shown, type Asked } from "./Shown";

/** `number`: figures stand below it. `hidden`: it is only read out. */
export type Head = string | { text: string; number?: boolean; hidden?: boolean };

interface Props<P, R> {
  of: Asked<{ pages: P[] }> & Pages;
  rowsOf: (pages: readonly P[]) => readonly R[];
  heads: readonly Head[];
  empty: ReactNode;
  /** A `tr` with its key. */
  children: (row: R) => ReactNode;
}

export function PagedTable<P, R>({ of, rowsOf, heads, empty, children }: Props<P, R>) {
  return (
    <>
      <Shown of={of}>
        {({ pages }) => {
          const rows = rowsOf(pages);
          if (rows.length === 0) return empty;
          return (
            <div className="table-frame">
              <table className="table">
                <thead>
                  <tr>{heads.map(headCell)}</tr>
                </thead>
                <tbody>{rows.map((row) => children(row))}</tbody>
              </table>
            </div>
          );
        }}
      </Shown>
      <LoadMore of={of} />
    </>
  );
}

function headCell(head: Head) {
  const { text, number, hidden } = typeof head === "string" ? { text: head } : head;
  return (
    <th key={text} scope="col" className={number ? "number" : undefined}>
      {hidden ? <span className="visually-hidden">{text}</span> : text}
    </th>
  );
}
