// What can be done with the rows that are chosen.
import { useMay } from "../../api/session";
import { ACTIONS, type ActionName } from "../../parts/actions";
import { schedulesText } from "../../parts/bulk";
import { Button } from "../../parts/Button";
import type { Selection } from "./selection";

interface Props {
  selection: Selection;
  canBeMore: boolean;
  onEverything: () => void;
  onClear: () => void;
  onAct: (action: ActionName) => void;
}

const ORDER: readonly ActionName[] = ["pause", "resume", "trigger", "label", "delete"];

export function ChosenBar({ selection, canBeMore, onEverything, onClear, onAct }: Props) {
  const may = { operate: useMay("operate"), write: useMay("write") };
  const isAllowed = (action: ActionName) => may[ACTIONS[action].needs as "operate" | "write"];
  return (
    <div className="list-chosen" role="region" aria-label="What is chosen">
      <strong role="status">
        {selection.everything ? "All that fit the filter" : `${schedulesText(selection.ids.size)} chosen`}
      </strong>
      {canBeMore && !selection.everything ? (
        <Button small kind="quiet" onClick={onEverything}>
          Choose all that fit the filter
        </Button>
      ) : null}
      <Button small kind="quiet" onClick={onClear}>
        Clear
      </Button>
      <div className="row tight list-chosen-actions">
        {ORDER.filter(isAllowed).map((action) => (
          <Button key={action} small kind={action === "delete" ? "danger" : "plain"} onClick={() => onAct(action)}>
            {ACTIONS[action].text}…
          </Button>
        ))}
      </div>
    </div>
  );
}
