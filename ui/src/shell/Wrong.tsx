// The pages for an unknown address and for an error in a page.
import { Link } from "@tanstack/react-router";
import { FailureNote } from "../parts/Shown";
import { Page } from "../parts/Page";

export function NotThere() {
  return (
    <Page title="Page not found">
      <p>
        No page has this address. <Link to="/">Go to Overview</Link>
      </p>
    </Page>
  );
}

export function Crashed({ error }: { error: unknown }) {
  return (
    <Page title="Something went wrong">
      <p>The page failed with this error:</p>
      <FailureNote
        failure={error instanceof Error ? error : new Error(String(error))}
        again={() => window.location.reload()}
      />
    </Page>
  );
}
