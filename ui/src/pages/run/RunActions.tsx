// The actions on a run: cancel, terminate, rerun.
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { useSay } from "../../parts/Toasts";
import { OPEN_STATES } from "../runs/filters";
import { Rerun } from "./Rerun";

type Action = Schemas["StopAction"];

const STOPPED: Readonly<Record<Schemas["StopOutcome"], string>> = {
  cancelled: "Run cancelled",
  cancel_requested: "Stop requested",
  terminated: "Run terminated",
  unchanged: "Run had already ended",
};

export function RunActions({ run }: { run: Schemas["Run"] }) {
  const operates = useMay("operate");
  const [asked, setAsked] = useState<Action | "rerun" | null>(null);
  if (!operates) return null;
  const isOpen = OPEN_STATES.includes(run.state);
  const isRepeatable = !isOpen && run.schedule_id !== null && run.parent_run_id === null;
  return (
    <>
      {isOpen ? <Button onClick={() => setAsked("cancel")}>Cancel run</Button> : null}
      {isOpen ? (
        <Button kind="danger" onClick={() => setAsked("terminate")}>
          Terminate run
        </Button>
      ) : null}
      {isRepeatable ? (
        <Button kind="primary" onClick={() => setAsked("rerun")}>
          Rerun
        </Button>
      ) : null}
      {asked === "rerun" ? <Rerun run={run} onClose={() => setAsked(null)} /> : null}
      {asked === "cancel" || asked === "terminate" ? (
        <Stop run={run} action={asked} onClose={() => setAsked(null)} />
      ) : null}
    </>
  );
}

function Stop({ run, action, onClose }: { run: Schemas["Run"]; action: Action; onClose: () => void }) {
  const cancel = useWrite("post", "/api/runs/{run_id}/cancel");
  const terminate = useWrite("post", "/api/runs/{run_id}/terminate");
  const say = useSay();
  const write = action === "cancel" ? cancel : terminate;
  const done = {
    onSuccess: (made: Schemas["RunStopped"]) => {
      say(STOPPED[made.outcome]);
      onClose();
    },
  };
  const given = { path: { run_id: run.run_id } };
  return (
    <Dialog
      title={action === "cancel" ? "Cancel this run?" : "Terminate this run?"}
      onClose={onClose}
      closeText="Keep running"
      failure={write.error}
      action={{
        text: action === "cancel" ? "Cancel run" : "Terminate run",
        kind: "danger",
        busy: write.isPending,
        run: () => (action === "cancel" ? cancel.mutate(given, done) : terminate.mutate(given, done)),
      }}
    >
      <p>
        {action === "cancel"
          ? "Work that has not started ends now. Active work receives a stop request and ends when its target stops."
          : "The run ends now, without waiting for its target. The target may continue its work."}
        {run.steps && run.steps.length > 0 ? " Its steps end too." : ""}
      </p>
    </Dialog>
  );
}
