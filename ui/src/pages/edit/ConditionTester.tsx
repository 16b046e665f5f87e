// The condition, tried on what it would see now, or on a context of one's own.
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { ask, type Schemas } from "../../api/client";
import { readJson } from "../../api/json";
import { useNamespace } from "../../api/session";
import { Button } from "../../parts/Button";
import { TextArea } from "../../parts/Field";
import { Json } from "../../parts/Json";
import { FailureNote } from "../../parts/Shown";
import { useEditing, useField } from "./editing";
import { JsonField } from "./fields";

type Tested = Schemas["ConditionTest"];

export function ConditionTester() {
  const condition = useField("pre_dispatch_condition");
  const { scheduleId } = useEditing();
  const namespace = useNamespace();
  const [own, setOwn] = useState("");
  const test = useMutation<Tested, Error>({
    mutationFn: async () => {
      const context: unknown = own.trim() === "" ? undefined : readJson(own);
      const seen = context === undefined ? { schedule_id: scheduleId ?? undefined } : { context };
      return (
        await ask(
          "post",
          "/api/conditions/test",
          { body: { condition: condition.value, ...seen } as never },
          { namespace },
        )
      ).answer;
    },
  });
  return (
    <div className="field wide-field">
      <JsonField
        path={["pre_dispatch_condition"]}
        label="Condition"
        rows={4}
        hint='such as {"/last_24h_stats/failed": {"lt": 3}}; all clauses must hold'
      />
      {condition.value === undefined ? null : (
        <details className="policies">
          <summary>Try it</summary>
          <div className="stack">
            <TextArea
              label="Context"
              rows={3}
              className="mono"
              value={own}
              onChange={(event) => setOwn(event.target.value)}
              hint={
                scheduleId === null
                  ? "as JSON; empty = what a new schedule sees, which has had no run"
                  : "as JSON; empty = what the schedule would see now"
              }
            />
            <div>
              <Button small busy={test.isPending} onClick={() => test.mutate()}>
                Try it
              </Button>
            </div>
            {test.error ? <FailureNote failure={test.error} /> : null}
            {test.data ? <Result of={test.data} /> : null}
          </div>
        </details>
      )}
    </div>
  );
}

function Result({ of }: { of: Tested }) {
  return (
    <div className="stack" role="status">
      <div className={`note tone-${of.holds ? "ok" : "warn"}`}>
        {of.error ?? (of.holds ? "It holds: a run would start." : "It does not hold: no run would start.")}
      </div>
      <ul className="plain stack">
        {of.findings.map((each, index) => (
          <li key={index}>
            <span className={`badge tone-${each.holds ? "ok" : "warn"}`}>{each.holds ? "holds" : "does not"}</span>{" "}
            {each.sentence}
          </li>
        ))}
      </ul>
      {[...(of.warnings ?? []), ...(of.signal_error ? [`the signal is null: ${of.signal_error}`] : [])].map((text) => (
        <div key={text} className="note tone-warn">
          {text}
        </div>
      ))}
      {of.context_omitted ? (
        <p className="muted">What it saw is too large to be shown.</p>
      ) : (
        <details>
          <summary>What it saw</summary>
          <Json value={of.context} label="What it saw" />
        </details>
      )}
    </div>
  );
}
