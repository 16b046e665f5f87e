// Changes a schedule: what it would add, take away and move is shown before anything is kept.
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
  const { scheduleId } = useParams({ strict: false }) as { scheduleId: string };
  const writes = useMay("write");
  const path = { schedule_id: scheduleId };
  // Not live: what is edited must not change under the hands of whoever edits it.
  const tagged = useTagged("/api/schedules/{schedule_id}", { path }, { live: false, enabled: writes });
  const revisions = useRead(
    "/api/schedules/{schedule_id}/revisions",
    { path, query: { page_size: 1 } },
    { live: false, enabled: writes },
  );
  const [base, setBase] = useState<Base | null>(null);
  const [kept, setKept] = useState<Kept | null>(null);
  const document = revisions.data?.revisions[0]?.document as Doc | undefined;
  // What is on its way may be newer than what is known: somebody else's change, which is to be edited now.
  const isComing = tagged.isFetching || revisions.isFetching;
  if (base === null && tagged.data && document && !isComing) {
    // The note is kept beside the revisions, and belongs to what is edited.
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
      {writes ? null : <p>Your token may look at schedules, and not change any.</p>}
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

/** What somebody had made when they learned that it was no longer what they had begun with. */
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
  // Of the very document that would be saved: what the form has shown may be an answer to what stood there before.
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
        body: needed.body as never,
        extra: { ifMatch: base.etag ?? undefined },
      },
      {
        onSuccess: () => {
          setSaved(true);
          say(`${scheduleId} is saved`);
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
        saveText="Save…"
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
          title="What this changes"
          wide
          onClose={() => setAsked(null)}
          failure={stale ? null : change.error}
          action={{
            text: needsConfirm ? "Save it, I mean it" : "Save",
            run: save,
            busy: change.isPending || saved,
            disabled: stale || isAsking,
          }}
        >
          {stale ? (
            <div className="note tone-warn" role="alert">
              <div className="stack">
                <div>Somebody else has changed this schedule in the meantime. Your changes were not saved.</div>
                <div className="row">
                  {onTop(base.document, base.document, asked) === null ? null : (
                    <Button small kind="primary" onClick={() => onFresh({ before: base.document, mine: asked })}>
                      Put mine on top of theirs
                    </Button>
                  )}
                  <Button small onClick={() => onFresh(null)}>
                    Take theirs, and begin again
                  </Button>
                </div>
              </div>
            </div>
          ) : null}
          {isAsking ? (
            <Loading text="Asking which fires this adds, takes away and moves…" />
          ) : draft.data?.changes ? (
            <FireChanges changes={draft.data.changes} zone={base.zone} />
          ) : draft.error ? (
            <FailureNote failure={draft.error} again={() => void draft.refetch()} />
          ) : null}
          <h3>The document</h3>
          <JsonDiff before={base.document} after={asked} label="Before and after" />
        </Dialog>
      ) : null}
    </>
  );
}

function Owned({ base }: { base: Base }) {
  return (
    <div className="note tone-warn">
      {base.bundle ? `It is kept in the bundle ${base.bundle}` : "It follows a template"}: whoever applies that again
      may put back what you change here.
    </div>
  );
}
