// Form sections: schedule, rules, approvals and retries, metadata.
import { useRead } from "../../api/hooks";
import { Card } from "../../parts/Page";
import { SelectField } from "../../parts/Field";
import { getAt } from "../../document/document";
import { AssigneeText } from "./AssigneeText";
import { ConditionTester } from "./ConditionTester";
import { useEditing } from "./editing";
import { Choose, JsonField, LongText, NumberText, Text, TextList, YesNo, YesNoOtherwise } from "./fields";
import { asksOf, otherwiseText } from "./asking";
import { Policies } from "./Policies";
import {
  CATCHUP_CHOICES,
  CATCHUP_LABEL,
  DST_FOLD_CHOICES,
  DST_FOLD_LABEL,
  DST_GAP_CHOICES,
  DST_GAP_LABEL,
  FAILURE_CHOICES,
  FAILURE_LABEL,
  FALLBACK_LABEL,
  OVERLAP_CHOICES,
  OVERLAP_LABEL,
  WHILE_WAITING_CHOICES,
  WHILE_WAITING_LABEL,
} from "../../words";

const PRESETS = [
  ["", "Select an example"],
  ["0 9 * * 1-5", "Weekdays at 09:00"],
  ["*/15 * * * *", "Every 15 minutes"],
  ["0 * * * *", "Every hour"],
  ["0 2 * * *", "Daily at 02:00"],
  ["0 8 * * 1", "Mondays at 08:00"],
  ["0 0 1 * *", "First day of the month at 00:00"],
  ["0 18 L * *", "Last day of the month at 18:00"],
] as const;

export function WhenSection() {
  const { change } = useEditing();
  return (
    <Card title="Schedule">
      <div className="form-grid">
        <TextList
          path={["spec", "cron_expressions"]}
          label="Cron expressions"
          mono
          placeholder="0 9 * * 1-5"
          add="Add expression"
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
          label="Time zone"
          list="known-zones"
          mono
          hint="Time zone of the cron expressions. Default UTC."
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
          hint='Example: [{"every": "PT90M"}]'
        />
        <TextList
          path={["spec", "at"]}
          label="One-time runs"
          mono
          placeholder="2026-12-24T18:00:00+01:00"
          add="Add time"
        />
        <Text path={["spec", "start_at"]} label="Start" mono placeholder="2026-12-01T00:00:00Z" />
        <Text path={["spec", "end_at"]} label="End" mono placeholder="2027-12-01T00:00:00Z" />
        <NumberText
          path={["spec", "jitter_seconds"]}
          label="Jitter (s)"
          min={0}
          hint="Delays each run by a random time up to this value. Default 0."
        />
        <Choose path={["spec", "dst_gap"]} label={DST_GAP_LABEL} choices={DST_GAP_CHOICES} />
        <Choose path={["spec", "dst_fold"]} label={DST_FOLD_LABEL} choices={DST_FOLD_CHOICES} />
      </div>
    </Card>
  );
}

export function Whether() {
  const calendars = useRead("/api/calendars", { query: { page_size: 200 } }, { live: false });
  return (
    <Card title="Rules">
      <div className="form-grid">
        <TextList
          path={["calendars"]}
          label="Calendars"
          mono
          list="known-calendars"
          placeholder="weekdays"
          hint="Runs only on days that all calendars allow."
          add="Add calendar"
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
          label={OVERLAP_LABEL}
          hint="Applies while an earlier run is active."
          choices={OVERLAP_CHOICES}
        />
        <Choose
          path={["catchup_policy"]}
          label={CATCHUP_LABEL}
          hint="Applies to occurrences missed while the scheduler was down."
          choices={CATCHUP_CHOICES}
        />
        <NumberText
          path={["max_runs"]}
          label="Max runs"
          min={1}
          hint="Deletes the schedule after this many runs. Default: no limit."
        />
        <NumberText
          path={["budget", "max_daily_runs"]}
          label="Daily limit"
          min={0}
          hint="Maximum runs per UTC day. Default: no limit."
        />
        <NumberText
          path={["pause_on_failure"]}
          label="Pause after consecutive failures"
          min={1}
          hint="Default: never"
        />
        <NumberText
          path={["failing_after"]}
          label="Mark as failing after consecutive failures"
          min={1}
          hint="Default: the failing_after setting"
        />
        <ConditionTester />
        <JsonField
          path={["inputs_rotation"]}
          label="Rotating inputs"
          kind="any"
          rows={3}
          hint="JSON array of objects. Each run uses the next object."
        />
      </div>
    </Card>
  );
}

const FAILURE_MODE = ["failure_policy", "mode"];
const FALLBACK_ASSIGNEE = ["failure_policy", "fallback_assignee_id"];

export function ApprovalsAndRetries() {
  const { document, draft } = useEditing();
  const policies = draft?.policies;
  return (
    <Card title="Approvals & retries">
      <div className="form-grid">
        <YesNoOtherwise
          path={["approval_policy", "requires_approval"]}
          label="Require approval"
          otherwise={otherwiseText(document, policies)}
          hint="Any level can require approval: schedule, assignment, agent or workflow."
        />
        <TextList
          path={["approval_policy", "gates"]}
          label="Gates"
          placeholder="external_message"
          hint="Actions that always require approval"
          add="Add gate"
        />
        {asksOf(document, policies) ? (
          <>
            <TextList
              path={["approval_policy", "approvers"]}
              label="Approvers"
              placeholder="role:operator"
              hint="Principals or role:NAME. Default: all users with the approve permission."
              add="Add approver"
            />
            <NumberText
              path={["approval_policy", "approvals_required"]}
              label="Required approvals"
              min={1}
              hint="Default 1"
            />
            <NumberText
              path={["approval_policy", "expires_after_seconds"]}
              label="Approval timeout (s)"
              min={1}
              hint="Default 86400 (1 day)"
            />
            <Choose
              path={["approval_policy", "while_waiting"]}
              label={WHILE_WAITING_LABEL}
              hint="Effect of a waiting run on the next occurrence"
              choices={WHILE_WAITING_CHOICES}
            />
            <YesNo path={["approval_policy", "allow_requester"]} label="Allow the author or requester to approve" />
          </>
        ) : null}
        <NumberText
          path={["retry_policy", "max_retries"]}
          label="Max retries"
          hint="Default 1, or the value of the agent or assignment"
          min={0}
        />
        <NumberText
          path={["retry_policy", "backoff_ms"]}
          label="Initial backoff (ms)"
          min={0}
          hint="Default 1000. Doubles after each retry."
        />
        <Choose path={FAILURE_MODE} label={FAILURE_LABEL} choices={FAILURE_CHOICES} />
        {getAt(document, FAILURE_MODE) === "fallback" || getAt(document, FALLBACK_ASSIGNEE) !== undefined ? (
          <AssigneeText
            path={FALLBACK_ASSIGNEE}
            label={FALLBACK_LABEL}
            hint="Agent or team that takes over a failed step"
            types={["agent", "team"]}
          />
        ) : null}
      </div>
      <Policies />
    </Card>
  );
}

export function Metadata() {
  return (
    <Card title="Metadata">
      <div className="form-grid">
        <JsonField path={["labels"]} label="Labels" rows={3} hint='JSON object of strings. Example: {"team": "data"}' />
        <LongText path={["note"]} label="Note" rows={3} />
      </div>
    </Card>
  );
}
