// Page that edits a schedule and shows added, removed and moved runs before it saves.
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { Refused } from "../../api/client";
import { useRead, useTagged, useWrite } from "../../api/hooks";
import { useMay } from "../../api/session";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { JsonDiff } from "../../parts/Json";
import { Page } from "../../parts/Page";
import { FailureNote, Loading } from "../../parts/Shown";
import { useSay } from "../../parts/Toasts";
import { changeOf, onTop, type Doc } from "../../document/document";
import { FireChanges } from "../../parts/FireChanges";
import { useDraft } from "./draft";
import { Editor } from "./Editor";

export default function Edit() {
  const { scheduleId }: { scheduleId: string } = useParams({ strict: false });
  const writes = useMay("write");
  const path = { schedule_id: scheduleId };
  // Not live: the document must not change during the edit.
  const tagged = useTagged("/api/schedules/{schedule_id}", { path }, { live: false, enabled: writes });
  const revisions = useRead(
    "/api/schedules/{schedule_id}/revisions",
    { path, query: { page_size: 1 } },
    { live: false, enabled: writes },
  );
  const [base, setBase] = useState<Base | null>(null);
  const [kept, setKept] = useState<Kept | null>(null);
  const document = revisions.data?.revisions[0]?.document as Doc | undefined;
  // A pending answer may contain a newer change by another user.
  const isComing = tagged.isFetching || revisions.isFetching;
  if (base === null && tagged.data && document && !isComing) {
    // Revisions do not contain the note, which is editable too.
    const note = tagged.data.answer.note;
    setBase({
      document: note ? { ...document, note } : document,
      etag: tagged.data.etag,
      source: tagged.data.answer.source,
      bundle: tagged.data.answer.bundle,
      zone: tagged.data.answer.spec?.timezone ?? "UTC",
    });
  }
  const failure = tagged.error ?? revisions.error;
  return (
    <Page
      title={`Edit ${scheduleId}`}
      above={
        <Link to="/schedules/$scheduleId" params={{ scheduleId }}>
          ← {scheduleId}
        </Link>
      }
    >
      {writes ? null : <p>Read-only access: your token cannot edit schedules.</p>}
      {failure ? <FailureNote failure={failure} /> : null}
      {writes && base === null && !failure ? <Loading /> : null}
      {base ? (
        <Changing
          key={base.etag ?? ""}
          scheduleId={scheduleId}
          base={base}
          begin={(kept && onTop(base.document, kept.before, kept.mine)) ?? base.document}
          onFresh={(mine) => {
            setKept(mine);
            setBase(null);
          }}
        />
      ) : null}
    </Page>
  );
}

interface Base {
  document: Doc;
  etag: string | null;
  source: string;
  bundle: string | null;
  zone: string;
}

/** Unsaved changes at the time of a conflict with another user's change. */
interface Kept {
  before: Doc;
  mine: Doc;
}

interface ChangingProps {
  scheduleId: string;
  base: Base;
  begin: Doc;
  onFresh: (mine: Kept | null) => void;
}

function Changing({ scheduleId, base, begin, onFresh }: ChangingProps) {
  const merge = useWrite("patch", "/api/schedules/{schedule_id}");
  const replace = useWrite("put", "/api/schedules/{schedule_id}");
  const navigate = useNavigate();
  const say = useSay();
  const [asked, setAsked] = useState<Doc | null>(null);
  const [saved, setSaved] = useState(false);
  // Preview of the document to be saved; the form may still show that of an earlier one.
  const draft = useDraft(asked ?? base.document, base.document, scheduleId);
  const needed = asked === null ? null : changeOf(base.document, asked);
  const change = needed === null || needed.how === "merge" ? merge : replace;
  const needsConfirm = change.error instanceof Refused && change.error.reason.includes("confirm");
  const stale = change.error instanceof Refused && change.error.status === 412;
  const isAsking = draft.isPending || draft.isPlaceholderData;
  const save = () => {
    if (needed === null) return;
    change.mutate(
      {
        path: { schedule_id: scheduleId },
        query: { ...(needsConfirm ? { confirm: true } : {}), ...(needed.how === "whole" ? { whole: true } : {}) },
        body: needed.body,
        extra: { ifMatch: base.etag ?? undefined },
      },
      {
        onSuccess: () => {
          setSaved(true);
          say(`${scheduleId} saved`);
          void navigate({ to: "/schedules/$scheduleId", params: { scheduleId }, ignoreBlocker: true });
        },
      },
    );
  };
  return (
    <>
      <Editor
        before={base.document}
        begin={begin}
        scheduleId={scheduleId}
        saveText="Review changes"
        saving={change.isPending || saved}
        saved={saved}
        onSave={(document) => {
          merge.reset();
          replace.reset();
          setAsked(document);
        }}
        notes={base.source === "template" || base.bundle ? <Owned base={base} /> : null}
      />
      {asked ? (
        <Dialog
          title="Review changes"
          wide
          onClose={() => setAsked(null)}
          failure={stale ? null : change.error}
          action={{
            text: needsConfirm ? "Save anyway" : "Save",
            run: save,
            busy: change.isPending || saved,
            disabled: stale || isAsking,
          }}
        >
          {stale ? (
            <div className="note tone-warn" role="alert">
              <div className="stack">
                <div>Your changes were not saved because another user changed this schedule.</div>
                <div className="row">
                  {onTop(base.document, base.document, asked) === null ? null : (
                    <Button small kind="primary" onClick={() => onFresh({ before: base.document, mine: asked })}>
                      Reapply my changes
                    </Button>
                  )}
                  <Button small onClick={() => onFresh(null)}>
                    Discard mine
                  </Button>
                </div>
              </div>
            </div>
          ) : null}
          {isAsking ? (
            <Loading text="Loading added, removed and moved runs…" />
          ) : draft.data?.changes ? (
            <FireChanges changes={draft.data.changes} zone={base.zone} />
          ) : draft.error ? (
            <FailureNote failure={draft.error} again={() => void draft.refetch()} />
          ) : null}
          <h3>Document</h3>
          <JsonDiff before={base.document} after={asked} label="Before and after" />
        </Dialog>
      ) : null}
    </>
  );
}

function Owned({ base }: { base: Base }) {
  return (
    <div className="note tone-warn">
      {base.bundle
        ? `The next apply of bundle ${base.bundle} will overwrite your changes.`
        : "The next sync of the template may overwrite your changes."}
    </div>
  );
}
