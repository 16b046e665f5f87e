// Asks whoever is signed in and has followed a link with a token whether it is to be used.
import { useState } from "react";
import { useSignIn, type Session } from "../api/session";
import { Button } from "../parts/Button";
import { FailureNote } from "../parts/Shown";
import { Emblem } from "./Emblem";

export function SignInAnew({ given, session, onDone }: { given: string; session: Session; onDone: () => void }) {
  const signIn = useSignIn();
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  const enter = () => {
    setBusy(true);
    signIn(given).then(onDone, (wrong: Error) => {
      setFailure(wrong);
      setBusy(false);
    });
  };
  return (
    <main className="sign-in">
      <div className="card">
        <div className="row">
          <Emblem size={32} />
          <h1>Horarium</h1>
        </div>
        <p>
          You are signed in as <bdi>{session.principal}</bdi> ({session.role}). The link that you followed holds a
          token: with it you would go on as whoever it was made for.
        </p>
        {failure ? <FailureNote failure={failure} /> : null}
        <Button kind="primary" autoFocus onClick={onDone}>
          Stay as I am
        </Button>
        <Button busy={busy} onClick={enter}>
          Sign in with the link
        </Button>
      </div>
    </main>
  );
}
