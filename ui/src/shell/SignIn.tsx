// Where somebody shows a token once; what stays is a cookie that scripts cannot read.
import { useEffect, useState, type FormEvent } from "react";
import { useSignIn } from "../api/session";
import { Button } from "../parts/Button";
import { TextField } from "../parts/Field";
import { FailureNote } from "../parts/Shown";
import { Emblem } from "./Emblem";

const TOKEN = /^#token=(.+)$/;

/** `horarium ui` opens an address with `#token=…`: a fragment is not sent to anybody, and it is taken out at once. */
export function tokenOfAddress(): string | null {
  const found = TOKEN.exec(window.location.hash);
  if (found === null) return null;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  try {
    return decodeURIComponent(found[1]!);
  } catch {
    return found[1]!; // cut off on its way here; the service says that it knows no such token
  }
}

export function SignIn() {
  const signIn = useSignIn();
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const enter = (secret: string) => {
    setBusy(true);
    setFailure(null);
    signIn(secret.trim()).catch((wrong: Error) => {
      setFailure(wrong);
      setBusy(false);
    });
  };
  useEffect(() => {
    document.title = "Sign in · Horarium";
  }, []);
  const send = (event: FormEvent) => {
    event.preventDefault();
    enter(token);
  };
  return (
    <main className="sign-in">
      <form className="card" onSubmit={send}>
        <div className="row">
          <Emblem size={32} />
          <h1>Horarium</h1>
        </div>
        <p className="muted">When could it happen, whether it does, and why.</p>
        <TextField
          label="Token"
          type="password"
          autoComplete="current-password"
          autoFocus
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
          hint={
            <>
              <code>horarium token create</code> makes one; <code>horarium ui</code> opens this page with a link that
              signs you in.
            </>
          }
        />
        {failure ? <FailureNote failure={failure} /> : null}
        <Button kind="primary" type="submit" busy={busy} disabled={token.trim() === ""}>
          Sign in
        </Button>
      </form>
    </main>
  );
}
