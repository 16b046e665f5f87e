// The whole app: whoever is signed in sees the pages, everybody else the place to sign in.
import { useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { NamespaceContext, SessionContext, useSessionQuery } from "../api/session";
import { FailureNote, Loading } from "../parts/Shown";
import { Toasts } from "../parts/Toasts";
import { serverSaysNow } from "../time/now";
import { Frame } from "./Frame";
import { SignIn, tokenOfAddress } from "./SignIn";

export function App() {
  // Whoever follows a link with a token means that token, also where somebody is signed in already.
  const [given, setGiven] = useState(tokenOfAddress);
  const { ns } = useSearch({ strict: false }) as { ns?: string };
  const session = useSessionQuery(given === null);
  useEffect(() => {
    if (session.data) serverSaysNow(session.data.now);
  }, [session.data]);
  if (given !== null) return <SignIn given={given} onDone={() => setGiven(null)} />;
  if (session.isPending) return <Loading />;
  if (session.data == null) {
    if (session.error) {
      return (
        <main className="sign-in">
          <FailureNote failure={session.error} again={() => void session.refetch()} />
        </main>
      );
    }
    return <SignIn given={null} />;
  }
  return (
    <SessionContext value={session.data}>
      <NamespaceContext value={ns}>
        <Toasts>
          <Frame />
        </Toasts>
      </NamespaceContext>
    </SessionContext>
  );
}
