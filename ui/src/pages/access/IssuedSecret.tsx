// Shows the secret of a token, once: the service keeps only its digest.
import { useState } from "react";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { isolated } from "../../parts/isolated";

export function IssuedSecret({ name, secret, onClose }: { name: string; secret: string; onClose: () => void }) {
  const [copied, setCopied] = useState(false);
  const copy = () => void navigator.clipboard.writeText(secret).then(() => setCopied(true));
  return (
    <Dialog title={`The secret of ${isolated(name)}`} onClose={onClose} closeText="Done">
      <p>It is shown once, here and now. Whoever has it is whoever it speaks for.</p>
      <pre className="json" tabIndex={0} aria-label="Secret">
        {secret}
      </pre>
      <div className="row">
        <Button onClick={copy}>{copied ? "Copied" : "Copy"}</Button>
      </div>
    </Dialog>
  );
}
