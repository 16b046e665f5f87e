// Edits one document, as a form and as text side by side; the document is the only truth, and the service says what it means.
import { useBlocker } from "@tanstack/react-router";
import { useCallback, useMemo, useState, type ReactNode } from "react";
import type { Schemas } from "../../api/client";
import { TextSide } from "../../document/TextSide";
import { sameJson } from "../../parts/jsonInput";
import { Button } from "../../parts/Button";
import { Card } from "../../parts/Page";
import { FailureNote } from "../../parts/Shown";
import { useSettled } from "../../parts/useSettled";
import { setAt, type Doc, type Json, type Path } from "../../document/document";
import { DraftPanel, DraftYear } from "./DraftPanel";
import { useDraft } from "./draft";
import { EditingContext } from "./editing";
import { Beside, WhenSection, Whether, WhoAgrees } from "./sections";
import { What } from "./WhatSection";
import "./edit.css";

interface Props {
  before: Doc;
  /** What stands there at first, where that is not what was before. */
  begin?: Doc;
  scheduleId: string | null;
  /** What stands above the form: errors of the last save, notes. */
  notes?: ReactNode;
  saveText: string;
  saving: boolean;
  onSave: (document: Doc) => void;
  /** After it was saved nobody is asked about unsaved changes. */
  saved: boolean;
}

export function Editor({ before, begin = before, scheduleId, notes, saveText, saving, onSave, saved }: Props) {
  const [document, setDocument] = useState(begin);
  const changed = !sameJson(before, document);
  useUnsaved(changed && !saved);
  const settled = useSettled(document);
  const draft = useDraft(settled, before, scheduleId);
  const zone = zoneOf(document);
  const [unread, setUnread] = useUnread();
  const obstacle = obstacleOf({
    unread: unread.size > 0,
    draft: draft.data,
    unchanged: scheduleId !== null && !changed,
  });
  const editing = useMemo(
    () => ({
      document,
      change: (path: Path, value: Json | undefined) => setDocument((now) => setAt(now, path, value)),
      draft: draft.data,
      unread: setUnread,
      scheduleId,
    }),
    [document, draft.data, setUnread, scheduleId],
  );
  return (
    <EditingContext value={editing}>
      {notes}
      <div className="editor">
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            onSave(document);
          }}
        >
          {/* A text that cannot be read hides what the form would change: mended, it would take that back. */}
          <div className="stack sections" inert={unread.has(TEXT)}>
            <What />
            <WhenSection />
            <Whether />
            <WhoAgrees />
            <Beside />
          </div>
          <div className="row save-bar">
            <Button kind="primary" type="submit" busy={saving} disabled={obstacle !== null}>
              {saveText}
            </Button>
            {obstacle ? <span className={obstacle.tone}>{obstacle.text}</span> : null}
          </div>
        </form>
        <div className="stack beside">
          <DraftPanel draft={draft.data} zone={zone} busy={draft.isFetching} />
          {draft.error ? <FailureNote failure={draft.error} again={() => void draft.refetch()} /> : null}
          <Card title="The same as text">
            <TextSide
              document={document}
              onDocument={setDocument}
              onUnread={(is) => setUnread(TEXT, is)}
              label="The document as text"
            />
          </Card>
          <DraftYear draft={draft.data} />
        </div>
      </div>
    </EditingContext>
  );
}

const TEXT = "the whole text";

/** The inputs whose text cannot be read. */
function useUnread(): [unread: ReadonlySet<string>, set: (name: string, is: boolean) => void] {
  const [names, setNames] = useState<ReadonlySet<string>>(new Set());
  const set = useCallback((name: string, is: boolean) => {
    setNames((now) => {
      if (now.has(name) === is) return now;
      const next = new Set(now);
      if (is) next.add(name);
      else next.delete(name);
      return next;
    });
  }, []);
  return [names, set];
}

interface Standing {
  unread: boolean;
  draft: Schemas["ScheduleDraft"] | undefined;
  unchanged: boolean;
}

/** Why it cannot be saved now; null = it can. */
function obstacleOf({ unread, draft, unchanged }: Standing): { text: string; tone: string } | null {
  if (unread) return { text: "a text that cannot be read must be mended first", tone: "tone-bad" };
  if (draft?.may_write === false) return { text: "your token may look at it, and not save it", tone: "tone-bad" };
  if (draft?.valid === false) return { text: "what is marked must be mended first", tone: "tone-bad" };
  return unchanged ? { text: "nothing is changed", tone: "muted" } : null;
}

function zoneOf(document: Doc): string {
  const spec = document["spec"];
  const zone = typeof spec === "object" && spec !== null && !Array.isArray(spec) ? spec["timezone"] : undefined;
  return typeof zone === "string" && zone !== "" ? zone : "UTC";
}

function useUnsaved(unsaved: boolean): void {
  useBlocker({
    shouldBlockFn: () => unsaved && !window.confirm("Leave without saving? What you changed is lost."),
    enableBeforeUnload: () => unsaved,
    disabled: !unsaved,
  });
}
