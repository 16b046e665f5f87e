// Stops many runs: first what would be stopped, then the doing of it, page by page, then what became of each.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { ask, type Schemas } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import { RUN_LOOKS } from "../../marks/outcomes";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { SelectField } from "../../parts/Field";
import { FailureNote, Loading } from "../../parts/Shown";
import { counted } from "./counted";
import { BEFORE, standingText, stopOn, type Standing } from "./stopping";

export interface StopChoice {
  text: string;
  filter: { ids?: string[]; states?: string[]; schedule_ids?: string[] };
}

type Action = Schemas["StopAction"];
type Stops = Schemas["BulkStops"];

const ACTIONS = [
  ["cancel", "Cancel: what has not started ends now, what runs is asked to stop"],
  ["terminate", "Terminate: all of it ends now, whoever has it"],
] as const;
const LISTED = 8;

export function BulkStop({ choice, onClose }: { choice: StopChoice; onClose: (done: boolean) => void }) {
  const namespace = useNamespace();
  const [action, setAction] = useState<Action>("cancel");
  const stops = useStops((token) => page(namespace, { action, filter: choice.filter, next_page_token: token }));
  const { standing } = stops;
  const begun = standing.phase !== "asking" && !(standing.phase === "failed" && standing.counts.size === 0);
  const plan = useQuery<Stops, Failure>({
    queryKey: [namespace, "/api/runs/bulk", choice, action],
    queryFn: ({ signal }) => page(namespace, { action, filter: choice.filter, dry_run: true }, signal),
    enabled: !begun,
    staleTime: 0,
  });
  const many = plan.data?.outcomes.length ?? 0;
  const text = `${action === "cancel" ? "Cancel" : "Terminate"} ${plan.data?.next_page_token ? "all of them" : many === 1 ? "one run" : `${many} runs`}`;
  const busy = standing.phase === "working" || standing.phase === "halting";
  return (
    <Dialog
      title={`Stop ${choice.text}`}
      onClose={() => onClose(begun)}
      closeText={begun ? "Close" : "Leave them"}
      failure={standing.failure}
      action={
        standing.phase === "done"
          ? undefined
          : { text: begun && !busy ? "Go on" : text, kind: "danger", busy, disabled: many === 0, run: stops.go }
      }
    >
      {begun ? (
        <Outcomes standing={standing} onHalt={stops.halt} />
      ) : (
        <>
          <SelectField
            label="How"
            choices={ACTIONS}
            value={action}
            onChange={(event) => setAction(event.target.value as Action)}
          />
          <div role="status">
            {plan.data ? (
              <Plan plan={plan.data} />
            ) : plan.error ? (
              <FailureNote failure={plan.error} />
            ) : (
              <Loading text="Looking what would be stopped…" />
            )}
          </div>
        </>
      )}
    </Dialog>
  );
}

/** Taking the dialog away halts it as well: what nobody sees does not go on. */
function useStops(ask: (token: string | null) => Promise<Stops>) {
  const queries = useQueryClient();
  const [standing, setStanding] = useState(BEFORE);
  const isHalted = useRef(false);
  useEffect(() => () => void (isHalted.current = true), []);
  const go = () => {
    isHalted.current = false;
    void stopOn(standing, ask, setStanding, () => isHalted.current).then(() => queries.invalidateQueries());
  };
  const halt = () => {
    isHalted.current = true;
    setStanding((now) => (now.phase === "working" ? { ...now, phase: "halting" } : now));
  };
  return { standing, go, halt };
}

async function page(namespace: string, body: object, signal?: AbortSignal): Promise<Stops> {
  return (await ask("post", "/api/runs/bulk", { body }, { namespace, signal })).answer;
}

function Plan({ plan }: { plan: Stops }) {
  const { outcomes } = plan;
  if (outcomes.length === 0) return <p>Nothing to stop: none of them is open any more.</p>;
  const states = counted(outcomes.map((each) => (each.state === null ? "unknown" : RUN_LOOKS[each.state].word)));
  return (
    <div className="stack">
      <p>
        {plan.next_page_token
          ? `More than ${outcomes.length} runs`
          : outcomes.length === 1
            ? "One run"
            : `${outcomes.length} runs`}{" "}
        would be stopped: {states.map(([word, many]) => `${many} ${word}`).join(", ")}
        {plan.next_page_token ? " among the first of them" : ""}.
      </p>
      <ul>
        {outcomes.slice(0, LISTED).map((each) => (
          <li key={each.run_id}>
            <bdi>{each.schedule_id ?? "no schedule"}</bdi> <code className="small">{each.run_id}</code>
          </li>
        ))}
        {outcomes.length > LISTED ? <li className="muted">and {outcomes.length - LISTED} more</li> : null}
      </ul>
    </div>
  );
}

function Outcomes({ standing, onHalt }: { standing: Standing; onHalt: () => void }) {
  const { phase, wrong, wrongs } = standing;
  return (
    <div className="stack">
      <div className="row far">
        <p role="status">{standingText(standing)}</p>
        {phase === "working" || phase === "halting" ? (
          <Button small disabled={phase === "halting"} onClick={onHalt}>
            {phase === "halting" ? "Halting…" : "Halt"}
          </Button>
        ) : null}
      </div>
      {wrong.length > 0 ? (
        <ul>
          {wrong.map((each) => (
            <li key={each.run_id}>
              <code>{each.run_id}</code>: {each.message}
            </li>
          ))}
          {wrongs > wrong.length ? <li className="muted">and {wrongs - wrong.length} more</li> : null}
        </ul>
      ) : null}
    </div>
  );
}
