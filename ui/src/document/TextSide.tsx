// A document as text, in YAML or JSON; a text that cannot be read is kept as it was typed, and not taken.
import { useEffect, useState } from "react";
import { Button } from "../parts/Button";
import type { Doc } from "./document";
import { fromText, loadYaml, toText, type Format } from "./text";
import "./text.css";

interface Props {
  document: Doc;
  onDocument: (document: Doc) => void;
  label: string;
}

export function TextSide({ document, onDocument, label }: Props) {
  const [format, setFormat] = useState<Format>("yaml");
  const [ready, setReady] = useState(false);
  const [typed, setTyped] = useState<string | null>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  useEffect(() => {
    void loadYaml().then(() => setReady(true));
  }, []);
  const used = ready ? format : "json";
  const take = (text: string) => {
    setTyped(text);
    const read = fromText(text, used);
    setWrong("wrong" in read ? read.wrong : null);
    if ("document" in read) onDocument(read.document);
  };
  const choose = (next: Format) => {
    setFormat(next);
    setTyped(null);
    setWrong(null);
  };
  return (
    <div className="stack">
      <div className="row" role="group" aria-label="Format">
        {(["yaml", "json"] as const).map((each) => (
          <Button key={each} small pressed={used === each} onClick={() => choose(each)}>
            {each.toUpperCase()}
          </Button>
        ))}
      </div>
      <textarea
        className="input mono document-text"
        aria-label={label}
        aria-invalid={wrong !== null || undefined}
        spellCheck={false}
        value={typed ?? toText(document, used)}
        onChange={(event) => take(event.target.value)}
        // What is written elsewhere is shown here again, once nobody is writing.
        onBlur={() => {
          if (wrong === null) setTyped(null);
        }}
      />
      {wrong ? (
        <p className="tone-bad" role="alert">
          Not taken: {wrong}
        </p>
      ) : null}
    </div>
  );
}
