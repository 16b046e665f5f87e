// The parts of the form beside what is done: when, whether, who must agree, and what happens when it fails.
import { useRead } from "../../api/hooks";
import { Card } from "../../parts/Page";
import { SelectField } from "../../parts/Field";
import { ConditionTester } from "./ConditionTester";
import { useEditing } from "./editing";
import { Choose, JsonField, LongText, NumberText, Text, TextList, YesNo, YesNoOtherwise } from "./fields";
import { asksOf, otherwiseText } from "./asking";
import { Policies } from "./Policies";

const PRESETS = [
  ["", "Take an example…"],
  ["0 9 * * 1-5", "weekdays at 09:00"],
  ["*/15 * * * *", "every 15 minutes"],
  ["0 * * * *", "every hour"],
  ["0 2 * * *", "every night at 02:00"],
  ["0 8 * * 1", "Mondays at 08:00"],
  ["0 0 1 * *", "the first of the month"],
  ["0 18 L * *", "the last day of the month at 18:00"],
] as const;

export function WhenSection() {
  const { change } = useEditing();
  return (
    <Card title="When">
      <div className="form-grid">
        <TextList
          path={["spec", "cron_expressions"]}
          label="Cron expressions"
          mono
          placeholder="0 9 * * 1-5"
          add="Add an expression"
        />
        <SelectField
          label="Examples"
          choices={PRESETS}
          value=""
          onChange={(event) => {
            if (event.target.value) change(["spec", "cron_expressions"], [event.target.value]);
          }}
        />
        <Text
          path={["spec", "timezone"]}
          label="Zone"
          list="known-zones"
          mono
          hint="in which the expressions are read; UTC without one"
        />
        <datalist id="known-zones">
          {Intl.supportedValuesOf("timeZone").map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
        <JsonField
          path={["spec", "intervals"]}
          label="Intervals"
          kind="any"
          rows={2}
          hint='such as [{"every": "PT90M"}]'
        />
        <TextList
          path={["spec", "at"]}
          label="Single moments"
          mono
          placeholder="2026-12-24T18:00:00+01:00"
          add="Add a moment"
        />
        <Text path={["spec", "start_at"]} label="Not before" mono placeholder="2026-12-01T00:00:00Z" />
        <Text path={["spec", "end_at"]} label="Not after" mono placeholder="2027-12-01T00:00:00Z" />
        <NumberText
          path={["spec", "jitter_seconds"]}
          label="Spread over seconds"
          min={0}
          hint="so that not all start at once; the same after every restart"
        />
        <Choose
          path={["spec", "dst_gap"]}
          label="A time the clock leaps over"
          choices={[
            ["next_valid", "fires at the next valid moment"],
            ["skip", "does not fire"],
          ]}
        />
        <Choose
          path={["spec", "dst_fold"]}
          label="A time the clock shows twice"
          choices={[
            ["first", "fires the first time"],
            ["second", "fires the second time"],
            ["both", "fires both times"],
          ]}
        />
      </div>
    </Card>
  );
}

export function Whether() {
  const calendars = useRead("/api/calendars", { query: { page_size: 200 } }, { live: false });
  return (
    <Card title="Whether">
      <div className="form-grid">
        <TextList
          path={["calendars"]}
          label="Calendars"
          mono
          list="known-calendars"
          placeholder="weekdays"
          hint="all of them must allow the day"
          add="Add a calendar"
        />
        <datalist id="known-calendars">
          {[
            "weekdays",
            "weekends",
            "holidays:US",
            "holidays:DE",
            ...(calendars.data?.calendars.map((each) => each.name) ?? []),
          ].map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <Choose
          path={["overlap_policy"]}
          label="While an earlier run goes on"
          choices={[
            ["skip", "skip this one"],
            ["buffer_one", "hold one back"],
            ["buffer_all", "hold all back"],
            ["allow_all", "let them run side by side"],
            ["cancel_other", "cancel the earlier one"],
            ["terminate_other", "terminate the earlier one"],
          ]}
        />
        <Choose
          path={["catchup_policy"]}
          label="What was missed"
          choices={[
            ["fire_once", "is made up for once"],
            ["skip", "is skipped"],
            ["fire_all", "is made up for, all of it"],
            ["spread", "is made up for, spread out"],
          ]}
        />
        <NumberText path={["max_runs"]} label="Runs in all" min={1} hint="after so many it is over" />
        <NumberText path={["budget", "max_daily_runs"]} label="Runs a day" min={0} />
        <NumberText path={["pause_on_failure"]} label="Pause after failures in a row" min={1} />
        <NumberText path={["failing_after"]} label="Failing after failures in a row" min={1} />
        <ConditionTester />
        <JsonField
          path={["inputs_rotation"]}
          label="Inputs that take turns"
          kind="any"
          rows={3}
          hint="an array of objects, one for each run"
        />
      </div>
    </Card>
  );
}

export function WhoAgrees() {
  const { document, draft } = useEditing();
  const policies = draft?.policies;
  return (
    <Card title="Who must agree, and what if it fails">
      <div className="form-grid">
        <YesNoOtherwise
          path={["approval_policy", "requires_approval"]}
          label="Somebody must agree before a run"
          otherwise={otherwiseText(document, policies)}
          hint="a yes that anybody asks for is asked for: schedule, assignment, agent or workflow"
        />
        <TextList
          path={["approval_policy", "gates"]}
          label="Gates"
          placeholder="external_message"
          hint="what no step does without a yes"
          add="Add a gate"
        />
        {asksOf(document, policies) ? (
          <>
            <TextList
              path={["approval_policy", "approvers"]}
              label="Who may agree"
              placeholder="role:operator"
              hint="principals, or role:x; without any, whoever may approve"
              add="Add somebody"
            />
            <NumberText path={["approval_policy", "approvals_required"]} label="How many must agree" min={1} />
            <NumberText
              path={["approval_policy", "expires_after_seconds"]}
              label="Seconds it waits for a yes"
              min={1}
              hint="a day without it"
            />
            <Choose
              path={["approval_policy", "while_waiting"]}
              label="A run that waits is to the next one"
              choices={[
                ["count", "busy: the overlap rule holds"],
                ["supersede", "out of date: the newer one asks in its place"],
                ["ignore", "nothing"],
              ]}
            />
            <YesNo
              path={["approval_policy", "allow_requester"]}
              label="Author or requester may approve (allow_requester)"
            />
          </>
        ) : null}
        <NumberText
          path={["retry_policy", "max_retries"]}
          label="Tries after a failure"
          hint="0 = no retries; empty = 1, or as the agent or assignment says"
          min={0}
        />
        <NumberText path={["retry_policy", "backoff_ms"]} label="First pause between tries, ms" min={0} />
        <Choose
          path={["failure_policy", "mode"]}
          label="A step of a workflow that fails"
          choices={[
            ["isolate", "leaves the others alone"],
            ["halt", "stops the workflow"],
            ["fallback", "is given to somebody else"],
          ]}
        />
      </div>
      <Policies />
    </Card>
  );
}

export function Beside() {
  return (
    <Card title="Beside">
      <div className="form-grid">
        <JsonField path={["labels"]} label="Labels" rows={3} hint='texts to find it by, such as {"team": "data"}' />
        <LongText path={["note"]} label="Note" rows={3} />
      </div>
    </Card>
  );
}
