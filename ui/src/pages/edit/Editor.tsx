// Editor of a schedule document as a form and as text side by side.
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
import { ApprovalsAndRetries, Metadata, Whether, WhenSection } from "./sections";
import { What } from "./WhatSection";
import "./edit.css";

interface Props {
  before: Doc;
  /** Initial document, if it differs from the saved one. */
  begin?: Doc;
  scheduleId: string | null;
  /** Errors of the last save and notes, shown above the form. */
  notes?: ReactNode;
  saveText: string;
  saving: boolean;
  onSave: (document: Doc) => void;
  /** Suppresses the warning about unsaved changes. */
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
          {/* The form is inert while the text is unreadable: fixing the text would undo changes made in the form. */}
          <div className="stack sections" inert={unread.has(TEXT)}>
            <What />
            <WhenSection />
            <Whether />
            <ApprovalsAndRetries />
            <Metadata />
          </div>
          <div className="row save-bar">
            <Button kind="primary" type="submit" busy={saving} disabled={obstacle !== null}>
              {saveText}
            </Button>
            {obstacle ? <span className={obstacle.tone}>{obstacle.text}</span> : null}
          </div>
        </form>
        <div className="stack editor-preview">
          <DraftPanel draft={draft.data} zone={zone} busy={draft.isFetching} />
          {draft.error ? <FailureNote failure={draft.error} again={() => void draft.refetch()} /> : null}
          <Card title="YAML">
            <TextSide
              document={document}
              onDocument={setDocument}
              onUnread={(is) => setUnread(TEXT, is)}
              label="Schedule document"
            />
          </Card>
          <DraftYear draft={draft.data} />
        </div>
      </div>
    </EditingContext>
  );
}

const TEXT = "document text";

/** Track the inputs whose text is unreadable. */
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

/** Return the reason why saving is disabled, or null. */
function obstacleOf({ unread, draft, unchanged }: Standing): { text: string; tone: string } | null {
  if (unread) return { text: "Fix the errors above", tone: "tone-bad" };
  if (draft?.may_write === false) return { text: "Read-only access", tone: "tone-bad" };
  if (draft?.valid === false) return { text: "Fix the errors above", tone: "tone-bad" };
  return unchanged ? { text: "No changes", tone: "muted" } : null;
}

function zoneOf(document: Doc): string {
  const spec = document["spec"];
  const zone = typeof spec === "object" && spec !== null && !Array.isArray(spec) ? spec["timezone"] : undefined;
  return typeof zone === "string" && zone !== "" ? zone : "UTC";
}

function useUnsaved(unsaved: boolean): void {
  useBlocker({
    shouldBlockFn: () => unsaved && !window.confirm("Leave without saving? Your changes will be lost."),
    enableBeforeUnload: () => unsaved,
    disabled: !unsaved,
  });
}
