// Bulk actions for the selected rows.
import { useMay } from "../../api/session";
import { ACTIONS, type ActionName } from "../../parts/actions";
import { schedulesText } from "../../parts/bulk";
import { Button } from "../../parts/Button";
import type { Selection } from "./selection";

interface Props {
  selection: Selection;
  canBeMore: boolean;
  /** Number of schedules that match the filters; null = unknown. */
  matching: number | null;
  onEverything: () => void;
  onClear: () => void;
  onAct: (action: ActionName) => void;
}

const ORDER: readonly ActionName[] = ["pause", "resume", "trigger", "label", "delete"];

export function ChosenBar({ selection, canBeMore, matching, onEverything, onClear, onAct }: Props) {
  const may = { operate: useMay("operate"), write: useMay("write") };
  const many = matching === null ? "" : `${matching.toLocaleString("en-GB")} `;
  const isAllowed = (action: ActionName) => may[ACTIONS[action].needs as "operate" | "write"];
  return (
    <div className="list-chosen" role="region" aria-label="Selection">
      <strong role="status">
        {selection.everything ? `All ${many}matching selected` : `${schedulesText(selection.ids.size)} selected`}
      </strong>
      {canBeMore && !selection.everything ? (
        <Button small kind="quiet" onClick={onEverything}>
          Select all {many}matching
        </Button>
      ) : null}
      <Button small kind="quiet" onClick={onClear}>
        Clear selection
      </Button>
      <div className="row tight list-chosen-actions">
        {ORDER.filter(isAllowed).map((action) => (
          <Button key={action} small kind={action === "delete" ? "danger" : "plain"} onClick={() => onAct(action)}>
            {ACTIONS[action].text}
          </Button>
        ))}
      </div>
    </div>
  );
}
