// The one table: a frame that scrolls sideways, the headings of the columns, and rows that the caller draws.
import type { ComponentProps, ReactNode } from "react";

interface Heading extends Omit<ComponentProps<"th">, "children"> {
  text: ReactNode;
  /** Tells columns apart whose `text` is not a plain text. */
  id?: string;
  /** Its cells are figures. */
  number?: boolean;
  /** It is only read out. */
  hidden?: boolean;
}

/** An empty text is a column without a heading; `null` and `false` are no column. */
export type Head = string | Heading | null | false;

interface Props extends Omit<ComponentProps<"table">, "children" | "frame"> {
  heads: readonly Head[];
  /** Each row is a `tr` with its key. */
  children: ReactNode;
  /** A text is only read out. */
  caption?: ReactNode;
  /** The name of the frame where the keyboard can scroll it. */
  region?: string;
  /** The frame; `null` for none. */
  frame?: ComponentProps<"div"> | null;
  /** Below the rows, inside the frame. */
  below?: ReactNode;
  head?: ComponentProps<"thead">;
  headRow?: ComponentProps<"tr">;
  body?: ComponentProps<"tbody">;
}

export function Table({
  heads,
  children,
  caption,
  region,
  frame = {},
  below,
  head,
  headRow,
  body,
  className = "table",
  ...rest
}: Props) {
  const table = (
    <table className={className} {...rest}>
      {caption ? (
        <caption className={typeof caption === "string" ? "visually-hidden" : undefined}>{caption}</caption>
      ) : null}
      <thead {...head}>
        <tr {...headRow}>{heads.map(headCell)}</tr>
      </thead>
      <tbody {...body}>{children}</tbody>
    </table>
  );
  if (frame === null) return table;
  const scrolled = region === undefined ? {} : ({ tabIndex: 0, role: "region", "aria-label": region } as const);
  return (
    <div className="table-frame" {...scrolled} {...frame}>
      {table}
      {below}
    </div>
  );
}

function headCell(head: Head, place: number) {
  if (head === null || head === false) return null;
  const {
    text,
    id,
    number,
    hidden,
    className = number ? "number" : undefined,
    ...rest
  }: Heading = typeof head === "string" ? { text: head } : head;
  const key = id ?? (typeof text === "string" && text !== "" ? text : place);
  if (text === "") return <td key={key} className={className} />;
  return (
    <th key={key} scope="col" className={className} {...rest}>
      {hidden ? <span className="visually-hidden">{text}</span> : text}
    </th>
  );
}
