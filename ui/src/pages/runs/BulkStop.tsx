// Cancel or terminate many runs: a preview of which ones, then the progress.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import { Dialog } from "../../parts/Dialog";
import { SelectField } from "../../parts/Field";
import { JobProgress, useDialogJob } from "../../parts/JobProgress";
import { FailureNote, Loading } from "../../parts/Shown";
import { counted } from "./counted";
import { runsText, stopPages } from "./stopping";
import { inSentence, RUN_STATES } from "../../words";

export interface StopChoice {
  text: string;
  filter: { ids?: string[]; states?: string[]; schedule_ids?: string[] };
}

type Action = Schemas["StopAction"];
type Stops = Schemas["BulkStops"];

const ACTIONS = [
  ["cancel", "Cancel: end queued runs now, ask active runs to stop"],
  ["terminate", "Terminate: end all of them now"],
] as const;
const LISTED = 8;

export function BulkStop({ choice, onClose }: { choice: StopChoice; onClose: (started: boolean) => void }) {
  const namespace = useNamespace();
  const [action, setAction] = useState<Action>("cancel");
  const { job, refusal, start } = useDialogJob();
  const plan = useQuery<Stops, Failure>({
    queryKey: [namespace, "/api/runs/bulk", choice, action],
    queryFn: ({ signal }) => page(namespace, { action, filter: choice.filter, dry_run: true }, signal),
    enabled: job === undefined,
    staleTime: 0,
  });
  if (job) {
    return (
      <Dialog title={job.title} onClose={() => onClose(true)}>
        <JobProgress job={job} />
      </Dialog>
    );
  }
  const many = plan.data?.outcomes.length ?? 0;
  const title = `${action === "cancel" ? "Cancel" : "Terminate"} ${plan.data?.next_page_token ? choice.text : runsText(many)}`;
  const run = () => {
    const total = plan.data?.next_page_token ? null : many;
    const nextPage = stopPages((token) => page(namespace, { action, filter: choice.filter, next_page_token: token }));
    start({ title, kind: "run", namespace, total, nextPage });
  };
  return (
    <Dialog
      title={`Stop ${choice.text}`}
      onClose={() => onClose(false)}
      closeText="Keep running"
      failure={refusal}
      action={{ text: title, kind: "danger", disabled: many === 0, run }}
    >
      <SelectField
        label="Action"
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
          <Loading text="Counting…" />
        )}
      </div>
    </Dialog>
  );
}

async function page(namespace: string, body: object, signal?: AbortSignal): Promise<Stops> {
  return (await ask("post", "/api/runs/bulk", { body }, { namespace, signal })).answer;
}

function Plan({ plan }: { plan: Stops }) {
  const { outcomes } = plan;
  if (outcomes.length === 0) return <p>No open runs to stop.</p>;
  const states = counted(
    outcomes.map((each) => (each.state === null ? "unknown state" : inSentence(RUN_STATES[each.state]))),
  );
  return (
    <div className="stack">
      <p>
        {plan.next_page_token ? `More than ${outcomes.length} runs` : runsText(outcomes.length)} will be stopped:{" "}
        {states.map(([word, many]) => `${many} ${word}`).join(", ")}
        {plan.next_page_token ? " among the first of them" : ""}.
      </p>
      <ul>
        {outcomes.slice(0, LISTED).map((each) => (
          <li key={each.run_id}>
            <bdi>{each.schedule_id ?? "No schedule"}</bdi> <code className="small">{each.run_id}</code>
          </li>
        ))}
        {outcomes.length > LISTED ? <li className="muted">and {outcomes.length - LISTED} more</li> : null}
      </ul>
    </div>
  );
}
