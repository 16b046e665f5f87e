// Who did what, who was turned away, and whether that record is whole.
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState, type FormEvent } from "react";
import { usePages } from "../../api/hooks";
import { useMay, useNamespace, useSession } from "../../api/session";
import { Badge } from "../../marks/Mark";
import { Button } from "../../parts/Button";
import { SelectField, TextField } from "../../parts/Field";
import { LoadMore } from "../../parts/LoadMore";
import { Page } from "../../parts/Page";
import { Empty, FailureNote, Loading } from "../../parts/Shown";
import { chainOf, filtersOf, isFiltered, type Chain, type Filters } from "./audit";
import "./audit.css";
import { Entries } from "./Entries";

export default function Audit() {
  const administers = useMay("administer");
  return (
    <Page
      title="Audit"
      about="What admins did, and whom the service turned away. Each entry is tied to the one before it by its hash."
    >
      {administers ? (
        <Record />
      ) : (
        <Empty title="The audit is for admins">
          <p>Your token does not administer this namespace. Somebody whose token does can read here who did what.</p>
        </Empty>
      )}
    </Page>
  );
}

const AT_A_TIME = 100;

function Record() {
  const filters = filtersOf(useSearch({ strict: false }) as Record<string, unknown>);
  const found = usePages("/api/audit", { query: { ...filters, page_size: AT_A_TIME } });
  const entries = found.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <>
      <FilterForm key={JSON.stringify(filters)} filters={filters} />
      {found.error ? <FailureNote failure={found.error} again={() => void found.refetch()} /> : null}
      {found.data === undefined ? (
        found.error ? null : (
          <Loading />
        )
      ) : (
        <>
          <ChainNote chain={chainOf(found.data.pages, isFiltered(filters))} />
          {entries.length === 0 ? (
            <Empty title={isFiltered(filters) ? "No entry like this" : "Nothing was written yet"}>
              <p>
                Tokens issued and revoked, secrets, namespaces, approvals, deletions and refusals are written here, with
                who did it and from where.
              </p>
            </Empty>
          ) : (
            <Entries of={entries} />
          )}
          <LoadMore of={found} />
        </>
      )}
    </>
  );
}

function ChainNote({ chain }: { chain: Chain }) {
  const verify = <code>horarium audit verify</code>;
  switch (chain.kind) {
    case "empty":
      return null;
    case "whole":
      return (
        <p className="audit-chain small">
          <Badge look={{ word: "no gaps", tone: "ok", shape: "disc" }} text="No gaps" />
          <span className="muted">
            Entries {chain.first} to {chain.last} are numbered without gaps and end at the head of the chain
            {chain.toBegin ? "; these are all that are kept" : ""}. {verify} recomputes every hash.
          </span>
        </p>
      );
    case "filtered":
      return (
        <p className="row small muted">
          The chain has {chain.head} entries; those that fit the filter are shown. {verify} checks all of it.
        </p>
      );
    case "gap":
      return (
        <p className="note tone-bad" role="alert">
          The numbers have a gap around entry {chain.after}: entries are missing. Run {verify} and keep what it says.
        </p>
      );
    case "head_gone":
      return (
        <p className="note tone-bad" role="alert">
          There are entries, but the head of the chain is gone. Run {verify} and keep what it says.
        </p>
      );
  }
}

/** Sent as a whole: half a time is no filter. */
function FilterForm({ filters }: { filters: Filters }) {
  const [typed, setTyped] = useState(filters);
  const session = useSession();
  const own = useNamespace();
  const navigate = useNavigate();
  const show = (next: Filters) => {
    const cleared = { namespace: undefined, act: undefined, principal: undefined, since: undefined, until: undefined };
    void navigate({
      to: "/audit",
      search: ((before: object) => ({ ...before, ...cleared, ...filtersOf({ ...next }) })) as never,
    });
  };
  const send = (event: FormEvent) => {
    event.preventDefault();
    show(typed);
  };
  const field = (name: keyof Filters) => ({
    value: typed[name] ?? "",
    onChange: (event: { target: { value: string } }) => setTyped({ ...typed, [name]: event.target.value }),
  });
  const namespaces = [...new Set([own, typed.namespace ?? own, ...session.namespaces])];
  return (
    <form className="audit-filters" role="search" aria-label="Entries" onSubmit={send}>
      {session.everywhere ? (
        <SelectField
          label="Namespace"
          {...field("namespace")}
          value={typed.namespace ?? own}
          choices={namespaces.map((each) => [each, each])}
        />
      ) : null}
      <TextField label="Act" placeholder="issue_token" {...field("act")} />
      <TextField label="Who" placeholder="name of a principal" {...field("principal")} />
      <TextField label="Since" placeholder="2026-03-01T00:00Z" {...field("since")} />
      <TextField label="Until" placeholder="2026-03-02T00:00Z" {...field("until")} />
      <div className="row audit-buttons">
        <Button type="submit" kind="primary">
          Show
        </Button>
        {Object.keys(filters).length > 0 ? (
          <Button kind="quiet" onClick={() => show({})}>
            Show all
          </Button>
        ) : null}
      </div>
    </form>
  );
}
