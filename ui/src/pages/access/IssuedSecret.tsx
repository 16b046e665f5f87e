// Shows the secret of a token, once: the service keeps only its digest.
import { CopyButton } from "../../parts/CopyButton";
import { Dialog } from "../../parts/Dialog";
import { isolated } from "../../parts/isolated";

export function IssuedSecret({ name, secret, onClose }: { name: string; secret: string; onClose: () => void }) {
  return (
    <Dialog title={`The secret of ${isolated(name)}`} onClose={onClose} closeText="Done">
      <p>It is shown once, here and now. Whoever has it is whoever it speaks for.</p>
      <pre className="json" tabIndex={0} aria-label="Secret">
        {secret}
      </pre>
      <div className="row">
        <CopyButton text={secret} />
      </div>
    </Dialog>
  );
}
