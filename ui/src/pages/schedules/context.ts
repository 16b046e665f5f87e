// Context shared by the cells of the list: health, selection, permissions and actions.
import { createContext, useContext } from "react";
import type { Schemas } from "../../api/client";
import type { OneAction } from "../../parts/actions";
import type { Row } from "./useSchedules";

export interface ListDoings {
  health: ReadonlyMap<string, Schemas["ScheduleHealth"]>;
  withDurations: boolean;
  mayOperate: boolean;
  mayWrite: boolean;
  isChosen: (id: string) => boolean;
  choose: (id: string, range: boolean) => void;
  act: (row: Row, action: OneAction | "history") => void;
  onLabel: (label: string) => void;
}

export const ListContext = createContext<ListDoings | null>(null);

export function useDoings(): ListDoings {
  const found = useContext(ListContext);
  if (found === null) throw new Error("used outside of the list");
  return found;
}
