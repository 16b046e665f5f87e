// A document as text, in YAML or JSON; a text that cannot be read is kept as it was typed, and not taken.
import { useEffect, useMemo, useState } from "react";
import { Button } from "../parts/Button";
import { sameJson } from "../parts/jsonInput";
import type { Doc } from "./document";
import { fromText, loadYaml, toText, type Format } from "./text";
import "./text.css";

interface Props {
  document: Doc;
  onDocument: (document: Doc) => void;
  /** Told whether what stands here cannot be read: then the document is not what somebody sees, and is not to be sent. */
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
          <span className="tone-bad">Not taken: {wrong}</span>
          <Button small onClick={drop}>
            Put back what was read last
          </Button>
        </div>
      ) : null}
      {used === "yaml" ? (
        <p className="hint">Comments and the order of lines are not kept: the service stores what the text says.</p>
      ) : null}
    </div>
  );
}

/** As it was typed, comments and all, for as long as it says what the document says. */
function shownText(typed: Typed | null, document: Doc, format: Format): string {
  if (typed === null) return toText(document, format);
  const isSame = "wrong" in typed.read || sameJson(typed.read.document, document);
  return isSame ? typed.text : toText(document, format);
}
