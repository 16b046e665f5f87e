// The audit log: administrative actions, denied requests and the integrity of the log.
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
      about="Administrative actions and denied requests. Each entry includes the hash of the previous entry."
    >
      {administers ? (
        <Record />
      ) : (
        <Empty title="Admin role required">
          <p>To read the audit log, use a token with the role admin in this namespace.</p>
        </Empty>
      )}
    </Page>
  );
}

const AT_A_TIME = 100;

function Record() {
  const filters = filtersOf(useSearch({ strict: false }));
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
            <Empty title={isFiltered(filters) ? "No matching entries" : "No entries yet"}>
              <p>
                The audit log records changes to tokens, secrets and namespaces, approvals, deletions and denied
                requests, with the principal and the client address.
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
          <Badge look={{ word: "No gaps", tone: "ok", shape: "disc" }} text="No gaps" />
          <span className="muted">
            Entries {chain.first} to {chain.last} are consecutive and end at the head of the chain
            {chain.toBegin ? " (all retained entries)" : ""}. {verify} recomputes every hash.
          </span>
        </p>
      );
    case "filtered":
      return (
        <p className="row small muted">
          The chain has {chain.head} entries. The table shows matching entries. {verify} checks the whole chain.
        </p>
      );
    case "gap":
      return (
        <p className="note tone-bad" role="alert">
          Entries are missing near number {chain.after}. Run {verify} and save its output.
        </p>
      );
    case "head_gone":
      return (
        <p className="note tone-bad" role="alert">
          The head of the chain is missing. Run {verify} and save its output.
        </p>
      );
  }
}

/** Submit all filters together. */
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
    <form className="audit-filters" role="search" aria-label="Audit entries" onSubmit={send}>
      {session.everywhere ? (
        <SelectField
          label="Namespace"
          {...field("namespace")}
          value={typed.namespace ?? own}
          choices={namespaces.map((each) => [each, each])}
        />
      ) : null}
      <TextField label="Action" placeholder="issue_token" {...field("act")} />
      <TextField label="Principal" placeholder="Name" {...field("principal")} />
      <TextField label="Since" placeholder="2026-03-01T00:00Z" {...field("since")} />
      <TextField label="Until" placeholder="2026-03-02T00:00Z" {...field("until")} />
      <div className="row audit-buttons">
        <Button type="submit" kind="primary">
          Apply filters
        </Button>
        {Object.keys(filters).length > 0 ? (
          <Button kind="quiet" onClick={() => show({})}>
            Clear filters
          </Button>
        ) : null}
      </div>
    </form>
  );
}
