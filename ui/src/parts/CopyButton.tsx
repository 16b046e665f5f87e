// Puts a text on the clipboard. A page that did not come over TLS may not: there it is no button, and the text is marked.
import { useState } from "react";
import { Button } from "./Button";
import { useSay } from "./Toasts";

export function CopyButton({ text, small }: { text: string; small?: boolean }) {
  const say = useSay();
  const [copied, setCopied] = useState(false);
  if (!("clipboard" in navigator)) return null;
  const copy = () =>
    void navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => say("The browser does not let us copy; mark the text instead", "warn"),
    );
  return (
    <Button small={small} onClick={copy}>
      {copied ? "Copied" : "Copy"}
    </Button>
  );
}
