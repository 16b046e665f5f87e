// Definition tab of a schedule: rules, document, effective policies and revisions.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState, type ReactNode } from "react";
import { ask, type Schemas } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";
import { Button } from "../../parts/Button";
import { Timed } from "../../parts/Explain";
import { Json } from "../../parts/Json";
import { Card, Facts } from "../../parts/Page";
import { Loading, Shown } from "../../parts/Shown";
import { Table } from "../../parts/Table";
import { ALL_DEFAULTS, ASSIGNEE_TYPES, CATCHUP_LABEL, counted, NONE, OVERLAP_LABEL } from "../../words";
import { approvalWords, catchupWords, clausesOf, overlapWords, policyLines, type PolicyLine } from "./policyWords";
import { Revisions } from "./Revisions";
import type { ViewProps } from "./Schedule";
import type { WholeSchedule } from "./whole";

type Schedule = WholeSchedule;

export function Definition({ schedule, search, change }: ViewProps) {
  return (
    <>
      {schedule.status === "deleted" ? (
        <Card title="Rules">
          <Facts of={rulesOf(schedule)} />
        </Card>
      ) : (
        <AsItIs schedule={schedule} />
      )}
      <Revisions schedule={schedule} search={search} change={change} />
    </>
  );
}

type Fact = readonly [name: string, value: ReactNode];

function rulesOf(schedule: Schedule): Fact[] {
  const approval = approvalWords(schedule.approval_policy);
  const none = <span className="muted">{NONE}</span>;
  return [
    ["Schedule", schedule.words ? <Timed text={schedule.words} zone={schedule.spec.timezone} /> : none],
    ["Calendars", schedule.calendars.length > 0 ? <Calendars names={schedule.calendars} /> : none],
    ["Condition", schedule.pre_dispatch_condition ? <Condition of={schedule.pre_dispatch_condition} /> : none],
    ["Rotating inputs", schedule.inputs_rotation.length > 0 ? <Rotation schedule={schedule} /> : none],
    ["Approval", approval ?? <span className="muted">Not required by this schedule</span>],
    [OVERLAP_LABEL, overlapWords(schedule)],
    [CATCHUP_LABEL, catchupWords(schedule)],
    ...(schedule.concurrency_key
      ? [
          [
            "Concurrency limit",
            <span key="key">
              {schedule.concurrency_limit} for key <bdi>{schedule.concurrency_key}</bdi>
            </span>,
          ] as const,
        ]
      : []),
    ...(schedule.assignee_id ? [["Assignee", <Assignee key="who" schedule={schedule} />] as const] : []),
    ...(schedule.max_runs !== null ? [["Max runs", schedule.max_runs.toLocaleString("en-GB")] as const] : []),
  ];
}

function Assignee({ schedule }: { schedule: Schedule }) {
  const id = schedule.assignee_id ?? "";
  return schedule.assignee_type === "team" ? (
    <Link to="/teams/$teamId" params={{ teamId: id }}>
      {ASSIGNEE_TYPES.team} <bdi>{id}</bdi>
    </Link>
  ) : (
    <Link to="/agents/$agentId" params={{ agentId: id }}>
      {ASSIGNEE_TYPES.agent} <bdi>{id}</bdi>
    </Link>
  );
}

/** Links to calendars; `name@Zone` links to the calendar `name`. */
function Calendars({ names }: { names: readonly string[] }) {
  return (
    <>
      All must allow the day:{" "}
      {names.map((name, index) => (
        <span key={name}>
          {index > 0 ? ", " : ""}
          <Link to="/calendars/$name" params={{ name: name.replace(/@[^@]*$/, "") }}>
            <bdi>{name}</bdi>
          </Link>
        </span>
      ))}
    </>
  );
}

const MOST_CLAUSES = 20;

function Condition({ of }: { of: unknown }) {
  const clauses = clausesOf(of);
  return (
    <ul className="plain clauses">
      {clauses.slice(0, MOST_CLAUSES).map((clause, index) => (
        <li key={index}>
          <code dir="auto">{clause.where}</code> {clause.operator} <code dir="auto">{clause.value}</code>
        </li>
      ))}
      {clauses.length > MOST_CLAUSES ? <li className="muted">and {clauses.length - MOST_CLAUSES} more</li> : null}
    </ul>
  );
}

function Rotation({ schedule }: { schedule: Schedule }) {
  const many = schedule.inputs_rotation.length;
  return (
    <details>
      <summary>
        {counted(many, "input")}; next: {(schedule.rotation_index % many) + 1}
      </summary>
      <Json value={schedule.inputs_rotation} label="Rotating inputs" />
    </details>
  );
}

/** Load the validated definition with its warnings and the effective policies of the next run. */
function useDraft(schedule: Schedule) {
  const namespace = useNamespace();
  return useQuery<Schemas["ScheduleDraft"], Failure>({
    queryKey: [namespace, "/api/schedules/draft", schedule.schedule_id, schedule.revision, schedule.version],
    queryFn: async ({ signal }) =>
      (
        await ask(
          "post",
          "/api/schedules/draft",
          { query: { schedule_id: schedule.schedule_id, n: 0 }, body: {} },
          { namespace, signal },
        )
      ).answer,
  });
}

function AsItIs({ schedule }: { schedule: Schedule }) {
  const found = useDraft(schedule);
  return (
    <>
      {found.data ? <Warnings texts={found.data.warnings} /> : null}
      <div className="columns">
        <Card title="Rules">
          <Facts of={rulesOf(schedule)} />
        </Card>
        <Shown of={found}>{(draft) => <Document of={draft.document} />}</Shown>
      </div>
      {found.data ? <Policies of={found.data.policies} /> : null}
    </>
  );
}

function Warnings({ texts }: { texts: readonly string[] }) {
  if (texts.length === 0) return null;
  return (
    <div className="note tone-warn">
      <ul className="plain stack">
        {texts.slice(0, 20).map((text, index) => (
          <li key={index} dir="auto">
            {text}
          </li>
        ))}
      </ul>
    </div>
  );
}

type Form = "json" | "yaml";

function Document({ of }: { of: unknown }) {
  const [form, setForm] = useState<Form>("json");
  const button = (each: Form, text: string) => (
    <Button small pressed={form === each} onClick={() => setForm(each)}>
      {text}
    </Button>
  );
  return (
    <Card
      title="Document"
      actions={
        <>
          {button("json", "JSON")}
          {button("yaml", "YAML")}
        </>
      }
    >
      {form === "json" ? <Json value={of} label="Definition (JSON)" /> : <Yaml value={of} />}
    </Card>
  );
}

/** The YAML library is loaded on demand. */
function Yaml({ value }: { value: unknown }) {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    let wanted = true;
    void import("yaml").then(({ stringify }) => {
      if (wanted) setText(stringify(value, { lineWidth: 100 }));
    });
    return () => {
      wanted = false;
    };
  }, [value]);
  return text === null ? <Loading /> : <Json value={text} label="Definition (YAML)" />;
}

function Policies({ of }: { of: Schemas["RunPolicies"] | null }) {
  const lines = policyLines(of);
  const said = lines.filter((line) => !line.isDefault);
  const rest = lines.filter((line) => line.isDefault);
  return (
    <Card title="Policies for the next run">
      <div className="stack">
        {said.length > 0 ? <PolicyTable lines={said} /> : <p className="muted">{ALL_DEFAULTS}</p>}
        {rest.length > 0 ? (
          <details>
            <summary>{counted(rest.length, "default policy", "default policies")}</summary>
            <PolicyTable lines={rest} />
          </details>
        ) : null}
      </div>
    </Card>
  );
}

function PolicyTable({ lines }: { lines: readonly PolicyLine[] }) {
  return (
    <Table className="table policies" heads={["Policy", "Value", "Source"]}>
      {lines.map((line) => (
        <tr key={line.name}>
          <td>
            <code>{line.name}</code>
          </td>
          <td dir="auto">{line.value}</td>
          <td className="nowrap">{line.source}</td>
        </tr>
      ))}
    </Table>
  );
}
