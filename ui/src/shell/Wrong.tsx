// What stands where no page is, and where one broke.
import { Link } from "@tanstack/react-router";
import { FailureNote } from "../parts/Shown";
import { Page } from "../parts/Page";

export function NotThere() {
  return (
    <Page title="There is no such page">
      <p>
        The address may be mistyped. <Link to="/">Go to Now</Link>
      </p>
    </Page>
  );
}

export function Crashed({ error }: { error: unknown }) {
  return (
    <Page title="This page broke">
      <p>It is our mistake. What the program says:</p>
      <FailureNote
        failure={error instanceof Error ? error : new Error(String(error))}
        again={() => window.location.reload()}
      />
    </Page>
  );
}
