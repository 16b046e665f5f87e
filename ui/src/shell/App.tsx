// The whole app: whoever is signed in sees the pages, everybody else the place to sign in.
import { useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { NamespaceContext, SessionContext, useSessionQuery } from "../api/session";
import { FailureNote, Loading } from "../parts/Shown";
import { Toasts } from "../parts/Toasts";
import { serverSaysNow } from "../time/now";
import { Frame } from "./Frame";
import { SignIn, tokenOfAddress } from "./SignIn";
import { SignInAnew } from "./SignInAnew";

/** Of the address with which the page was opened, or of one that was put into the place of it: that loads nothing anew. */
function useGivenToken() {
  const [given, setGiven] = useState(tokenOfAddress);
  useEffect(() => {
    const heard = () => setGiven((before) => tokenOfAddress() ?? before);
    window.addEventListener("hashchange", heard);
    return () => window.removeEventListener("hashchange", heard);
  }, []);
  return [given, setGiven] as const;
}

export function App() {
  const [given, setGiven] = useGivenToken();
  const { ns } = useSearch({ strict: false }) as { ns?: string };
  const session = useSessionQuery();
  useEffect(() => {
    if (session.data) serverSaysNow(session.data.now);
  }, [session.data]);
  if (session.isPending) return <Loading />;
  if (session.data == null) {
    if (session.error) {
      return (
        <main className="sign-in">
          <FailureNote failure={session.error} again={() => void session.refetch()} />
        </main>
      );
    }
    return <SignIn given={given} onTaken={() => setGiven(null)} />;
  }
  // Anybody can write a link: it does not make somebody else of whoever is signed in.
  if (given !== null) return <SignInAnew given={given} session={session.data} onDone={() => setGiven(null)} />;
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
