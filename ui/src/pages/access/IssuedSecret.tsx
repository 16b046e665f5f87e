// Show the secret of a token once: the service stores only its hash.
import type { Schemas } from "../../api/client";
import { CopyButton } from "../../parts/CopyButton";
import { Dialog } from "../../parts/Dialog";
import { isolated } from "../../parts/isolated";

interface Props {
  token: Pick<Schemas["IssuedToken"], "name" | "subject" | "secret">;
  onClose: () => void;
}

export function IssuedSecret({ token: { name, subject, secret }, onClose }: Props) {
  return (
    <Dialog title={`Secret of ${isolated(name)}`} onClose={onClose} closeText="Done">
      <p>
        Copy the secret now. It is not shown again. Anyone with this token acts as <bdi>{subject ?? name}</bdi>.
      </p>
      <pre className="json" tabIndex={0} aria-label="Secret">
        {secret}
      </pre>
      <div className="row">
        <CopyButton text={secret} />
      </div>
    </Dialog>
  );
}
