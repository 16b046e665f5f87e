// The app: the pages for a signed-in user, otherwise the sign-in form.
import { useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { NamespaceContext, SessionContext, useSessionQuery } from "../api/session";
import { useJobs } from "../parts/JobProgress";
import { FailureNote, Loading } from "../parts/Shown";
import { Toasts } from "../parts/Toasts";
import { serverSaysNow } from "../time/now";
import { ConfirmSignIn } from "./ConfirmSignIn";
import { Frame } from "./Frame";
import { SignIn, tokenOfAddress } from "./SignIn";

/** Return the token in the address, also after the fragment changes without a reload. */
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
  const { ns }: { ns?: string } = useSearch({ strict: false });
  const session = useSessionQuery();
  useEffect(() => {
    if (session.data) serverSaysNow(session.data.now);
  }, [session.data]);
  const jobs = useJobs();
  const principal = session.data?.principal;
  useEffect(() => () => jobs.endAll(), [jobs, principal]);
  if (session.isPending) return <Loading />;
  if (session.data == null && session.error) {
    return (
      <main className="sign-in">
        <FailureNote failure={session.error} again={() => void session.refetch()} />
      </main>
    );
  }
  if (given !== null)
    return <ConfirmSignIn given={given} session={session.data ?? null} onDone={() => setGiven(null)} />;
  if (session.data == null) return <SignIn />;
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
