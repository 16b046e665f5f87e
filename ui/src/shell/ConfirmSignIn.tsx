// Confirm a sign-in link: show whose token it holds, since an attacker could send a link with their own token.
import { useEffect, useState } from "react";
import { useSignIn, whoseToken, type Session } from "../api/session";
import { Button } from "../parts/Button";
import { FailureNote, Loading } from "../parts/Shown";
import { Emblem } from "./Emblem";

/** `session` is the one that would end; `onDone` is called once the link is used or discarded. */
export function ConfirmSignIn({
  given,
  session,
  onDone,
}: {
  given: string;
  session: Session | null;
  onDone: () => void;
}) {
  const signIn = useSignIn();
  const [holder, setHolder] = useState<Session | null>(null);
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Error | null>(null);
  useEffect(() => {
    document.title = "Sign in · Horarium";
  }, []);
  useEffect(() => {
    let left = false;
    setHolder(null);
    setFailure(null);
    whoseToken(given).then(
      (found) => left || setHolder(found),
      (wrong: Error) => left || setFailure(wrong),
    );
    return () => {
      left = true;
    };
  }, [given]);
  const enter = () => {
    setBusy(true);
    setFailure(null);
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
        {holder ? (
          <>
            <p>This link contains a token. Use it only if you requested the link.</p>
            <dl className="facts">
              <dt>Subject</dt>
              <dd>
                <bdi>{holder.principal}</bdi>
              </dd>
              <dt>Role</dt>
              <dd>{holder.role}</dd>
              <dt>Namespace</dt>
              <dd>
                <bdi>{holder.namespace}</bdi>
                {holder.everywhere ? " and all others" : ""}
              </dd>
            </dl>
          </>
        ) : null}
        {session ? (
          <p>
            You are signed in as <bdi>{session.principal}</bdi> ({session.role}).
          </p>
        ) : null}
        {failure ? <FailureNote failure={failure} /> : null}
        {holder === null && failure === null ? <Loading /> : null}
        <Button kind="primary" autoFocus onClick={onDone}>
          {session ? "Keep current session" : "Cancel"}
        </Button>
        {holder ? (
          <Button busy={busy} onClick={enter}>
            Sign in as <bdi>{holder.principal}</bdi>
          </Button>
        ) : null}
      </div>
    </main>
  );
}
