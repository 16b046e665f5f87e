// Page that creates a schedule from an example or a copy.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { serviceBase } from "../../api/client";
import { useRead, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Page } from "../../parts/Page";
import { FailureNote, Loading } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { useViewerZone } from "../../time/zones";
import type { Doc } from "../../document/document";
import { Editor } from "./Editor";
import { templateNamed, TEMPLATES } from "./templates";

interface CreateSearch {
  template?: unknown;
  from?: unknown;
  agent?: unknown;
}

export default function Create() {
  const writes = useMay("write");
  const search: CreateSearch = useSearch({ strict: false });
  const from = typeof search.from === "string" ? search.from : null;
  if (!writes) {
    return (
      <Page title="Create schedule">
        <p>Read-only access: your token cannot create schedules.</p>
      </Page>
    );
  }
  return from === null ? <FromTemplate search={search} /> : <FromOther scheduleId={from} />;
}

function FromTemplate({ search }: { search: CreateSearch }) {
  const navigate = useNavigate();
  const zone = useViewerZone();
  const agent = typeof search.agent === "string" ? search.agent : null;
  const chosen = agent === null ? templateNamed(search.template) : templateNamed("prompt");
  const made = chosen.make(zone, window.location.origin + serviceBase);
  return (
    <Page title="Create schedule" about="Starts from a working example. The preview updates as you edit.">
      {agent === null ? (
        <div className="templates" role="group" aria-label="Examples">
          {TEMPLATES.map((each) => (
            <button
              key={each.id}
              type="button"
              className="template"
              aria-pressed={each.id === chosen.id}
              onClick={() =>
                void navigate({ to: "/schedules/new", search: { template: each.id } as never, replace: true })
              }
            >
              <strong>{each.title}</strong>
              <span className="small muted">{each.about}</span>
            </button>
          ))}
        </div>
      ) : null}
      <Making key={`${chosen.id} ${agent ?? ""}`} begin={agent === null ? made : { ...made, assignee_id: agent }} />
    </Page>
  );
}

/** A copy has no ID yet and starts as a new schedule. */
function FromOther({ scheduleId }: { scheduleId: string }) {
  const revisions = useRead(
    "/api/schedules/{schedule_id}/revisions",
    { path: { schedule_id: scheduleId }, query: { page_size: 1 } },
    { live: false },
  );
  const document = revisions.data?.revisions[0]?.document as Doc | undefined;
  return (
    <Page title={`Copy ${scheduleId}`}>
      {revisions.error ? <FailureNote failure={revisions.error} /> : null}
      {revisions.isPending ? <Loading /> : null}
      {document ? <Making begin={copied(document)} /> : null}
    </Page>
  );
}

function copied(document: Doc): Doc {
  const { schedule_id: _id, namespace: _namespace, owner: _owner, user_id: _user, source: _source, ...rest } = document;
  return typeof rest["name"] === "string" && rest["name"] !== "" ? { ...rest, name: `${rest["name"]} (copy)` } : rest;
}

function Making({ begin }: { begin: Doc }) {
  const create = useWrite("post", "/api/schedules");
  const navigate = useNavigate();
  const say = useSay();
  const [before] = useState(begin);
  const [saved, setSaved] = useState(false);
  const save = (document: Doc) =>
    create.mutate(
      { body: document },
      {
        onSuccess: (made) => {
          setSaved(true);
          say(`${made.schedule_id} created`);
          void navigate({
            to: "/schedules/$scheduleId",
            params: { scheduleId: made.schedule_id },
            ignoreBlocker: true,
          });
        },
      },
    );
  return (
    <Editor
      before={before}
      scheduleId={null}
      notes={create.error ? <FailureNote failure={create.error} /> : null}
      saveText="Create"
      saving={create.isPending || saved} // A second click while the next page loads must not create another schedule.
      saved={saved}
      onSave={save}
    />
  );
}
