// Columns of the list and their widths.
import { columnVisibilityFeature, createColumnHelper, tableFeatures } from "@tanstack/react-table";
import { ChooseCell, LabelsCell, MenuCell, NameCell, NextCell, OwnerCell, RecentCell, WordsCell } from "./cells";
import type { Row } from "./useSchedules";
import type { ColumnId } from "./visibility";

export const features = tableFeatures({ columnVisibilityFeature });
const helper = createColumnHelper<typeof features, Row>();

export const columns = helper.columns([
  helper.display({ id: "choose", header: "", cell: ({ row }) => <ChooseCell row={row.original} /> }),
  helper.display({ id: "name", header: "Name", cell: ({ row }) => <NameCell row={row.original} /> }),
  helper.display({ id: "words", header: "Schedule", cell: ({ row }) => <WordsCell row={row.original} /> }),
  helper.display({ id: "next", header: "Next run", cell: ({ row }) => <NextCell row={row.original} /> }),
  helper.display({ id: "recent", header: "Last 30", cell: ({ row }) => <RecentCell row={row.original} /> }),
  helper.display({ id: "labels", header: "Labels", cell: ({ row }) => <LabelsCell row={row.original} /> }),
  helper.display({ id: "owner", header: "Owner", cell: ({ row }) => <OwnerCell row={row.original} /> }),
  helper.display({ id: "menu", header: "Actions", cell: ({ row }) => <MenuCell row={row.original} /> }),
]);

const WIDTHS: Readonly<Partial<Record<ColumnId, string>>> = {
  choose: "24px",
  name: "minmax(180px, 2.2fr)",
  words: "minmax(130px, 1.4fr)",
  next: "minmax(172px, 1.1fr)",
  recent: "258px",
  labels: "minmax(64px, 0.9fr)",
  owner: "minmax(60px, 0.6fr)",
  menu: "34px",
};

export function gridOf(visible: readonly string[]): string {
  return visible.map((id) => WIDTHS[id as ColumnId] ?? "1fr").join(" ");
}
