// A table with pages of rows, a loading state and an empty state.
import type { ComponentProps, ReactNode } from "react";
import { LoadMore, type Pages } from "./LoadMore";
import { Shown, type Asked } from "./Shown";
import { Table } from "./Table";

interface Props<P, R> extends Pick<ComponentProps<typeof Table>, "heads" | "region"> {
  of: Asked<{ pages: P[] }> & Pages;
  rowsOf: (pages: readonly P[]) => readonly R[];
  empty: ReactNode;
  /** A `tr` with its key. */
  children: (row: R) => ReactNode;
}

export function PagedTable<P, R>({ of, rowsOf, empty, children, ...table }: Props<P, R>) {
  return (
    <>
      <Shown of={of}>
        {({ pages }) => {
          const rows = rowsOf(pages);
          if (rows.length === 0) return empty;
          return <Table {...table}>{rows.map((row) => children(row))}</Table>;
        }}
      </Shown>
      <LoadMore of={of} />
    </>
  );
}
