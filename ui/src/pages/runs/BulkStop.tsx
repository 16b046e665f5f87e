// Stops many runs: first what would be stopped, then the doing of it, page by page, then what became of each.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import { RUN_LOOKS } from "../../marks/outcomes";
import { Dialog } from "../../parts/Dialog";
import { SelectField } from "../../parts/Field";
import { FailureNote, Loading } from "../../parts/Shown";
import { counted } from "./counted";

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
const MOST_PAGES = 200;
const LISTED = 8;

export function BulkStop({ choice, onClose }: { choice: StopChoice; onClose: (done: boolean) => void }) {
  const namespace = useNamespace();
  const queries = useQueryClient();
  const [action, setAction] = useState<Action>("cancel");
  const [done, setDone] = useState<Stops["outcomes"] | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const plan = useQuery<Stops, Failure>({
    queryKey: [namespace, "/api/runs/bulk", choice, action],
    queryFn: ({ signal }) => page(namespace, { action, filter: choice.filter, dry_run: true }, signal),
    enabled: done === null && !busy,
    staleTime: 0,
  });
  const stop = async () => {
    setBusy(true);
    setFailure(null);
    const outcomes: Stops["outcomes"][number][] = [];
    try {
      let token: string | null = null;
      for (let pages = 0; pages < MOST_PAGES; pages += 1) {
        const answer: Stops = await page(namespace, { action, filter: choice.filter, next_page_token: token });
        outcomes.push(...answer.outcomes);
        setDone([...outcomes]);
        token = answer.next_page_token;
        if (token === null) break;
      }
    } catch (wrong) {
      setFailure(wrong as Error);
    }
    setBusy(false);
    void queries.invalidateQueries();
  };
  const many = plan.data?.outcomes.length ?? 0;
  const text = `${action === "cancel" ? "Cancel" : "Terminate"} ${plan.data?.next_page_token ? "all of them" : many === 1 ? "one run" : `${many} runs`}`;
  return (
    <Dialog
      title={`Stop ${choice.text}`}
      onClose={() => onClose(done !== null)}
      closeText={done === null ? "Leave them" : "Close"}
      failure={failure}
      action={
        done !== null && !busy
          ? undefined
          : { text, kind: "danger", busy, disabled: many === 0, run: () => void stop() }
      }
    >
      {done === null ? (
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
      ) : (
        <Outcomes outcomes={done} busy={busy} />
      )}
    </Dialog>
  );
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

function Outcomes({ outcomes, busy }: { outcomes: Stops["outcomes"]; busy: boolean }) {
  const wrong = outcomes.filter((each) => each.message);
  return (
    <div className="stack" role="status">
      <p>
        {busy ? "So far: " : ""}
        {counted(outcomes.map((each) => each.outcome.replaceAll("_", " ")))
          .map(([word, many]) => `${many} ${word}`)
          .join(", ") || "nothing was left to stop"}
      </p>
      {wrong.length > 0 ? (
        <ul>
          {wrong.slice(0, 20).map((each) => (
            <li key={each.run_id}>
              <code>{each.run_id}</code>: {each.message}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
