// What can be done with a run: stop it, or do it once more.
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
  cancelled: "It is cancelled.",
  cancel_requested: "It was asked to stop.",
  terminated: "It is terminated.",
  unchanged: "It had ended already.",
};

export function RunActions({ run }: { run: Schemas["Run"] }) {
  const operates = useMay("operate");
  const [asked, setAsked] = useState<Action | "rerun" | null>(null);
  if (!operates) return null;
  const isOpen = OPEN_STATES.includes(run.state);
  const isRepeatable = !isOpen && run.schedule_id !== null && run.parent_run_id === null;
  return (
    <>
      {isOpen ? <Button onClick={() => setAsked("cancel")}>Cancel…</Button> : null}
      {isOpen ? (
        <Button kind="danger" onClick={() => setAsked("terminate")}>
          Terminate…
        </Button>
      ) : null}
      {isRepeatable ? (
        <Button kind="primary" onClick={() => setAsked("rerun")}>
          Run again…
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
      closeText="Leave it"
      failure={write.error}
      action={{
        text: action === "cancel" ? "Cancel the run" : "Terminate the run",
        kind: "danger",
        busy: write.isPending,
        run: () => (action === "cancel" ? cancel.mutate(given, done) : terminate.mutate(given, done)),
      }}
    >
      <p>
        {action === "cancel"
          ? "What has not started ends now. What runs is asked to stop, and ends when whoever does it has stopped."
          : "It ends now, whoever has it. What they still do is not waited for, and may go on outside."}
        {run.steps && run.steps.length > 0 ? " Its steps end with it." : ""}
      </p>
    </Dialog>
  );
}
