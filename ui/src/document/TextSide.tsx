// A document as YAML or JSON text. Invalid text stays in the editor and does not change the document.
import { useEffect, useMemo, useState } from "react";
import { Button } from "../parts/Button";
import { sameJson } from "../parts/jsonInput";
import type { Doc } from "./document";
import { fromText, loadYaml, toText, type Format } from "./text";
import "./text.css";

interface Props {
  document: Doc;
  onDocument: (document: Doc) => void;
  /** Called with whether the text is invalid: then it differs from the document, which must not be saved. */
  onUnread: (unread: boolean) => void;
  label: string;
}

interface Typed {
  text: string;
  read: { document: Doc } | { wrong: string };
}

export function TextSide({ document, onDocument, onUnread, label }: Props) {
  const [format, setFormat] = useState<Format>("yaml");
  const [ready, setReady] = useState(false);
  const [typed, setTyped] = useState<Typed | null>(null);
  useEffect(() => {
    void loadYaml().then(() => setReady(true));
  }, []);
  const used = ready ? format : "json";
  const shown = useMemo(() => shownText(typed, document, used), [typed, document, used]);
  const wrong = typed && "wrong" in typed.read ? typed.read.wrong : null;
  const take = (text: string) => {
    const read = fromText(text, used);
    setTyped({ text, read });
    onUnread("wrong" in read);
    if ("document" in read) onDocument(read.document);
  };
  const drop = () => {
    setTyped(null);
    onUnread(false);
  };
  return (
    <div className="stack">
      <div className="row" role="group" aria-label="Format">
        {(["yaml", "json"] as const).map((each) => (
          <Button
            key={each}
            small
            pressed={used === each}
            disabled={wrong !== null}
            onClick={() => {
              setFormat(each);
              drop();
            }}
          >
            {each.toUpperCase()}
          </Button>
        ))}
      </div>
      <textarea
        className="input mono document-text"
        aria-label={label}
        aria-invalid={wrong !== null || undefined}
        spellCheck={false}
        value={shown}
        onChange={(event) => take(event.target.value)}
      />
      {wrong ? (
        <div className="row" role="alert">
          <span className="tone-bad">Invalid text: {wrong}</span>
          <Button small onClick={drop}>
            Restore last valid text
          </Button>
        </div>
      ) : null}
      {used === "yaml" ? <p className="hint">Comments and ordering are not preserved.</p> : null}
    </div>
  );
}

/** Return the typed text, with its comments, as long as it equals the document. */
function shownText(typed: Typed | null, document: Doc, format: Format): string {
  if (typed === null) return toText(document, format);
  const isSame = "wrong" in typed.read || sameJson(typed.read.document, document);
  return isSame ? typed.text : toText(document, format);
}
