// What is done: the kind of action and its fields.
import { useState } from "react";
import { useRead } from "../../api/hooks";
import { SelectField } from "../../parts/Field";
import { Card } from "../../parts/Page";
import { useEditing } from "./editing";
import { Choose, JsonField, LongText, NumberText, Text, YesNo } from "./fields";
import { actionOf, changedKind, kindOf, type Kind, type Left } from "./kinds";

const KINDS: readonly (readonly [Kind, string])[] = [
  ["http", "call an address"],
  ["prompt", "prompt an agent"],
  ["workflow", "start a workflow"],
  ["pull", "put it into a queue"],
  ["celery", "publish a Celery task"],
  ["command", "run a command"],
  ["python", "call a Python task"],
];

export function What() {
  const { document, change, scheduleId } = useEditing();
  const action = actionOf(document);
  const kind = kindOf(action);
  const [left, setLeft] = useState<Left>({});
  return (
    <Card title="What">
      <div className="form-grid">
        <Text path={["name"]} label="Name" hint="a line for people" />
        {scheduleId === null ? (
          <Text path={["schedule_id"]} label="Id" mono hint="made by the service where it is empty" />
        ) : null}
        <SelectField
          label="What it does"
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
          hint="an object, or an array of arguments"
          rows={3}
        />
        <YesNo path={["action", "template"]} label="Template: render {{ … }} in prompt and input" />
        <NumberText path={["action", "timeout_seconds"]} label="Seconds a run may take" min={1} />
        <Choose
          path={["action", "delivery"]}
          label="If nothing is heard of a launch"
          choices={[
            ["at_least_once", "try again: at least once"],
            ["at_most_once", "leave it: at most once"],
          ]}
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
          <Text path={["action", "url"]} label="Address" mono required />
          <Choose
            path={["action", "method"]}
            label="Method"
            choices={["POST", "GET", "PUT", "PATCH", "DELETE", "HEAD"].map((each) => [each, each] as const)}
          />
          <JsonField
            path={["action", "headers"]}
            label="Headers"
            rows={3}
            hint={'a value is a text, or {"$secret": "name"}'}
          />
        </>
      );
    case "prompt":
      return (
        <>
          <LongText path={["action", "prompt"]} label="What the agent is told" rows={5} />
          <AssigneeFields />
        </>
      );
    case "workflow":
      return (
        <>
          <WorkflowChoice />
          <Text path={["action", "workflow_type"]} label="Or the name of work that workers know" mono />
        </>
      );
    case "pull":
      return (
        <>
          <Text path={["action", "queue"]} label="Queue" mono required />
          <Text path={["action", "workflow_type"]} label="Name of the work" mono required />
        </>
      );
    case "celery":
      return (
        <>
          <Text path={["action", "task"]} label="Task" mono required />
          <Text path={["action", "connection"]} label="Broker" mono hint="by its name in the settings" />
          <Text path={["action", "queue"]} label="Queue" mono />
        </>
      );
    case "command":
      return <Text path={["action", "command"]} label="Command" mono hint="by its name in the settings" required />;
    default:
      return <Text path={["action", "task"]} label="Task" mono required />;
  }
}

function AssigneeFields() {
  const agents = useRead("/api/agents", { query: { page_size: 200 } }, { live: false });
  return (
    <>
      <Choose
        path={["assignee_type"]}
        label="Told to"
        choices={[
          ["agent", "an agent"],
          ["team", "a team"],
        ]}
      />
      <Text path={["assignee_id"]} label="Which one" list="known-agents" mono required />
      <datalist id="known-agents">
        {agents.data?.agents.map((agent) => (
          <option key={agent.id} value={agent.id}>
            {agent.name}
          </option>
        ))}
      </datalist>
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
