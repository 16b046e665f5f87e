// The sign-in form: it exchanges a token for a cookie that scripts cannot read.
import { useEffect, useState, type FormEvent } from "react";
import { useSignIn } from "../api/session";
import { Button } from "../parts/Button";
import { TextField } from "../parts/Field";
import { FailureNote } from "../parts/Shown";
import { Emblem } from "./Emblem";

const TOKEN = /^#token=(.+)$/;

/** `horarium ui` opens an address with `#token=…`: a fragment is never sent to a server, and this removes it at once. */
export function tokenOfAddress(): string | null {
  const found = TOKEN.exec(window.location.hash);
  if (found === null) return null;
  window.history.replaceState(null, "", window.location.pathname + window.location.search);
  try {
    return decodeURIComponent(found[1]!);
  } catch {
    return found[1]!; // truncated; the service rejects it
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
        <p className="muted">Durable scheduling for workflows and agents.</p>
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
              Create a token with <code>horarium token create</code>, or open a sign-in link with{" "}
              <code>horarium ui</code>.
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
