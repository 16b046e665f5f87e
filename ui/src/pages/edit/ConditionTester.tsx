// Condition field with a test against the current or a custom context.
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
        await ask("post", "/api/conditions/test", { body: { condition: condition.value, ...seen } }, { namespace })
      ).answer;
    },
  });
  return (
    <div className="field wide-field">
      <JsonField
        path={["pre_dispatch_condition"]}
        label="Condition"
        rows={4}
        hint='Example: {"/last_24h_stats/failed": {"lt": 3}}. All clauses must match.'
      />
      {condition.value === undefined ? null : (
        <details className="policies">
          <summary>Test condition</summary>
          <div className="stack">
            <TextArea
              label="Context"
              rows={3}
              className="mono"
              value={own}
              onChange={(event) => setOwn(event.target.value)}
              hint={
                scheduleId === null
                  ? "JSON. Default: the context of a new schedule without runs."
                  : "JSON. Default: the current context of the schedule."
              }
            />
            <div>
              <Button small busy={test.isPending} onClick={() => test.mutate()}>
                Test
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
        {of.error ?? (of.holds ? "Matches: a run would start." : "Does not match: no run would start.")}
      </div>
      <ul className="plain stack">
        {of.findings.map((each, index) => (
          <li key={index}>
            <span className={`badge tone-${each.holds ? "ok" : "warn"}`}>{each.holds ? "Matches" : "No match"}</span>{" "}
            {each.sentence}
          </li>
        ))}
      </ul>
      {[...(of.warnings ?? []), ...(of.signal_error ? [`The signal is null: ${of.signal_error}`] : [])].map((text) => (
        <div key={text} className="note tone-warn">
          {text}
        </div>
      ))}
      {of.context_omitted ? (
        <p className="muted">The context is too large to display.</p>
      ) : (
        <details>
          <summary>Context used</summary>
          <Json value={of.context} label="Context used" />
        </details>
      )}
    </div>
  );
}
