// The scheduled prompts of an agent.
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { Schemas } from "../../api/client";
import { useRead, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Badge } from "../../marks/Mark";
import { STATUS_LOOKS, type Look } from "../../marks/outcomes";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { TextArea, TextField } from "../../parts/Field";
import { Card } from "../../parts/Page";
import { Empty, FailureNote, Shown } from "../../parts/Shown";
import { SourceBadge } from "../../parts/SourceBadge";
import { Table } from "../../parts/Table";
import { useSay } from "../../parts/Toasts";
import { When } from "../../parts/When";
import { useViewerZone } from "../../time/zones";
import { CREATE, OPTIONAL, NONE, created, RUN_STATES, HEALTH } from "../../words";

type Row = Schemas["WorkspaceSchedule"];
const HERE = "/workspaces/{workspace_id}/schedules";
const ONE = "/workspaces/{workspace_id}/schedules/{workspace_schedule_id}";

export function Prompts({ agent }: { agent: Schemas["Agent"] }) {
  const writes = useMay("schedule");
  const prompts = useRead(HERE, { path: { workspace_id: agent.id } });
  const [creating, setCreating] = useState(false);
  return (
    <Card
      title="Scheduled prompts"
      actions={
        <>
          <Link to="/schedules" search={{ assignee: agent.id } as never}>
            View all schedules
          </Link>
          {writes ? (
            <Button kind="primary" onClick={() => setCreating(true)}>
              Create prompt
            </Button>
          ) : null}
        </>
      }
    >
      <Shown of={prompts}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title={NONE}>
              <p>A scheduled prompt sends a text to the agent at set times, for example on weekdays at 9:00.</p>
            </Empty>
          ) : (
            <Table heads={["Prompt", "Schedule", "Next run", "Last run", "Source", { text: "Actions", hidden: true }]}>
              {rows.map((row) => (
                <PromptRow key={row.id} agentId={agent.id} row={row} />
              ))}
            </Table>
          )
        }
      </Shown>
      {creating ? <NewPrompt agentId={agent.id} onClose={() => setCreating(false)} /> : null}
    </Card>
  );
}

const LAST: Record<Row["last_status"], Look> = {
  "": { word: HEALTH.never_run, tone: "quiet", shape: "ring" },
  success: { word: "Answered", tone: "ok", shape: "disc" },
  error: { word: RUN_STATES.failed, tone: "bad", shape: "cross" },
  skipped: { word: RUN_STATES.skipped, tone: "quiet", shape: "diamond" },
  stale: { word: "Empty answers", tone: "warn", shape: "triangle" },
};

function PromptRow({ agentId, row }: { agentId: string; row: Row }) {
  return (
    <tr data-row>
      <td>
        <Link to="/schedules/$scheduleId" params={{ scheduleId: row.id }}>
          <bdi>{row.name || row.id}</bdi>
        </Link>
        <div className="prompt-text small muted">
          <bdi>{row.prompt}</bdi>
        </div>
      </td>
      <td>
        <code className="nowrap">{row.cron_expr || "—"}</code>
        <div className="small muted">{row.timezone}</div>
      </td>
      <td>{row.enabled ? <When at={row.next_run_at} zone={row.timezone} /> : <Badge look={STATUS_LOOKS.paused} />}</td>
      <td>
        <Badge look={LAST[row.last_status]} />
        <div className="small muted">
          <When at={row.last_run_at} brief none="" />
        </div>
        {row.last_error ? <div className="small tone-bad">{row.last_error}</div> : null}
      </td>
      <td>
        <SourceBadge source={row.source} />
      </td>
      <td>
        <PromptActions agentId={agentId} row={row} />
      </td>
    </tr>
  );
}

function PromptActions({ agentId, row }: { agentId: string; row: Row }) {
  const [schedules, runs] = [useMay("schedule"), useMay("run")];
  const say = useSay();
  const change = useWrite("patch", ONE);
  const fire = useWrite("post", `${ONE}/run`);
  const path = { workspace_id: agentId, workspace_schedule_id: row.id };
  const failure = change.error ?? fire.error;
  return (
    <div className="stack">
      <div className="row">
        {runs && row.enabled ? (
          <Button
            small
            busy={fire.isPending}
            onClick={() => fire.mutate({ path }, { onSuccess: () => say("Prompt sent") })}
          >
            Run now
          </Button>
        ) : null}
        {schedules ? (
          <Button
            small
            busy={change.isPending}
            onClick={() => change.mutate({ path, body: { enabled: !row.enabled } })}
          >
            {row.enabled ? "Pause" : "Resume"}
          </Button>
        ) : null}
      </div>
      {failure ? <FailureNote failure={failure} /> : null}
    </div>
  );
}

function NewPrompt({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const create = useWrite("post", HERE);
  const say = useSay();
  const zone = useViewerZone();
  const [name, setName] = useState("");
  const [cron, setCron] = useState("0 9 * * 1-5");
  const [timezone, setTimezone] = useState(zone);
  const [prompt, setPrompt] = useState("");
  const run = () =>
    create.mutate(
      { path: { workspace_id: agentId }, body: { name, cron_expr: cron, timezone, prompt } },
      {
        onSuccess: () => {
          say(created(name || "Prompt"));
          onClose();
        },
      },
    );
  return (
    <Dialog
      title={`Create prompt for ${agentId}`}
      onClose={onClose}
      failure={create.error}
      action={{ text: CREATE, run, busy: create.isPending, disabled: prompt.trim() === "" || cron.trim() === "" }}
    >
      <TextArea label="Prompt" rows={5} value={prompt} onChange={(event) => setPrompt(event.target.value)} required />
      <TextField label="Display name" value={name} onChange={(event) => setName(event.target.value)} hint={OPTIONAL} />
      <TextField
        label="Cron expression"
        className="mono"
        value={cron}
        onChange={(event) => setCron(event.target.value)}
        hint="Minute, hour, day of month, month, day of week. 0 9 * * 1-5 runs at 9:00 on weekdays."
      />
      <TextField label="Time zone" value={timezone} onChange={(event) => setTimezone(event.target.value)} />
    </Dialog>
  );
}
