// Copy a text to the clipboard. Without TLS the browser has no clipboard, so there is no button.
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
      () => say("The browser denied access to the clipboard. Select and copy the text.", "warn"),
    );
  return (
    <Button small={small} onClick={copy}>
      {copied ? "Copied" : "Copy"}
    </Button>
  );
}
