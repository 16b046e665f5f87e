// Form section of the action: its type and fields.
import { useState } from "react";
import { useRead } from "../../api/hooks";
import { SelectField } from "../../parts/Field";
import { Card } from "../../parts/Page";
import { AssigneeText } from "./AssigneeText";
import { useEditing } from "./editing";
import { Choose, JsonField, LongText, NumberText, Text, YesNo } from "./fields";
import { ACTION_KINDS, ASSIGNEE_TYPES, DELIVERY_CHOICES, DELIVERY_LABEL } from "../../words";
import { actionOf, changedKind, kindOf, type Kind, type Left } from "./kinds";

const KINDS = Object.entries(ACTION_KINDS) as unknown as readonly (readonly [Kind, string])[];

export function What() {
  const { document, change, scheduleId } = useEditing();
  const action = actionOf(document);
  const kind = kindOf(action);
  const [left, setLeft] = useState<Left>({});
  return (
    <Card title="Action">
      <div className="form-grid">
        <Text path={["name"]} label="Display name" />
        {scheduleId === null ? <Text path={["schedule_id"]} label="ID" mono hint="Auto-generated if empty" /> : null}
        <SelectField
          label="Action type"
          choices={KINDS}
          value={kind}
          onChange={(event) => {
            const next = changedKind(action, kind, event.target.value, left);
            setLeft(next.left);
            change(["action"], next.action);
          }}
        />
        <KindFields kind={kind} />
        <JsonField
          path={["action", "input"]}
          label="Input"
          kind="any"
          hint="JSON object, or array of positional arguments"
          rows={3}
        />
        <YesNo path={["action", "template"]} label="Render {{ … }} templates in prompt and input" />
        <NumberText
          path={["action", "timeout_seconds"]}
          label="Timeout (s)"
          min={1}
          hint={`Default ${kind === "prompt" ? 300 : 3600}`}
        />
        <Choose
          path={["action", "delivery"]}
          label={DELIVERY_LABEL}
          choices={DELIVERY_CHOICES}
          hint="Applies if a dispatch receives no response"
        />
      </div>
    </Card>
  );
}

function KindFields({ kind }: { kind: string }) {
  switch (kind) {
    case "http":
      return (
        <>
          <Text path={["action", "url"]} label="URL" mono required />
          <Choose
            path={["action", "method"]}
            label="Method"
            choices={["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"].map((each) => [each, each] as const)}
          />
          <JsonField
            path={["action", "headers"]}
            label="Headers"
            rows={3}
            hint={'JSON object. Values are strings or {"$secret": "name"}.'}
          />
        </>
      );
    case "prompt":
      return (
        <>
          <LongText path={["action", "prompt"]} label="Prompt" rows={5} />
          <AssigneeFields />
        </>
      );
    case "workflow":
      return (
        <>
          <WorkflowChoice />
          <Text path={["action", "workflow_type"]} label="Workflow type (registered by workers)" mono />
        </>
      );
    case "pull":
      return (
        <>
          <Text path={["action", "queue"]} label="Queue" mono required />
          <Text path={["action", "workflow_type"]} label="Workflow type" mono required />
        </>
      );
    case "celery":
      return (
        <>
          <Text path={["action", "task"]} label="Task" mono required />
          <Text path={["action", "connection"]} label="Broker" mono hint="Broker name in the settings" />
          <Text path={["action", "queue"]} label="Queue" mono />
        </>
      );
    case "command":
      return <Text path={["action", "command"]} label="Command" mono hint="Command name in the settings" required />;
    default:
      return <Text path={["action", "task"]} label="Task" mono required />;
  }
}

function AssigneeFields() {
  const { document } = useEditing();
  const type = document["assignee_type"] === "team" ? "team" : "agent";
  return (
    <>
      <Choose path={["assignee_type"]} label="Assign to" choices={Object.entries(ASSIGNEE_TYPES)} />
      <AssigneeText path={["assignee_id"]} label={ASSIGNEE_TYPES[type]} types={[type]} />
    </>
  );
}

function WorkflowChoice() {
  const workflows = useRead("/api/workflows", { query: { page_size: 200 } }, { live: false });
  return (
    <>
      <Text path={["action", "workflow_id"]} label="Workflow" list="known-workflows" mono />
      <datalist id="known-workflows">
        {workflows.data?.workflows.map((each) => (
          <option key={each.workflow_id} value={each.workflow_id}>
            {each.name ?? ""}
          </option>
        ))}
      </datalist>
    </>
  );
}
