// Tables on a narrow screen: each row is a list of cells, each labelled with its column heading.
import { useEffect } from "react";

/** As in styles/tables.css. */
const NARROW = "(max-width: 640px)";
// Browsers may drop the table semantics of other layouts (CSS Display 3, section 2.5), so roles are set.
const ROLES: Readonly<Record<string, string>> = { THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };

/** Used once, in the frame; covers all tables with the class. */
export function useNarrowTables(): void {
  useEffect(() => {
    const narrow = window.matchMedia(NARROW);
    const look = () => {
      if (narrow.matches) document.querySelectorAll<HTMLTableElement>("table.table").forEach(label);
    };
    look();
    const watch = new MutationObserver(look);
    watch.observe(document.body, { childList: true, subtree: true });
    narrow.addEventListener("change", look);
    return () => {
      watch.disconnect();
      narrow.removeEventListener("change", look);
    };
  }, []);
}

export function label(table: HTMLTableElement): void {
  const heads = [...table.querySelectorAll("thead tr:first-child > *")].map(textOf);
  give(table, "role", "table");
  for (const part of table.querySelectorAll("thead, tbody, tr, td, th")) give(part, "role", roleOf(part));
  for (const row of table.querySelectorAll("tbody > tr"))
    [...row.children].forEach((cell, index) => {
      // A cell across several columns, such as a spacer of virtual rows, has no label.
      if (!cell.hasAttribute("colspan")) give(cell, "data-label", heads[index] ?? "");
    });
}

function roleOf(part: Element): string {
  if (part.tagName !== "TH") return ROLES[part.tagName]!;
  return part.getAttribute("scope") === "row" ? "rowheader" : "columnheader";
}

/** A visually hidden heading is not shown as a label. */
function textOf(head: Element): string {
  return head.querySelector(".visually-hidden") === null ? (head.textContent?.trim() ?? "") : "";
}

function give(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}
