// Built-in and saved views of the list; actions to save, delete and share a view.
import { Link } from "@tanstack/react-router";
import { useState, useSyncExternalStore } from "react";
import { Button } from "../../parts/Button";
import { Dialog } from "../../parts/Dialog";
import { TextField } from "../../parts/Field";
import { useSay } from "../../parts/Toasts";
import { searchOf, type Filters } from "./filters";
import { BUILT_IN, LONGEST_NAME, viewAt, VIEWS_KEY, viewsOf, viewsText, withView, type View } from "./views";

const watchers = new Set<() => void>();

function keep(views: readonly View[]): void {
  localStorage.setItem(VIEWS_KEY, viewsText(views));
  for (const each of watchers) each();
}

function useKept(): View[] {
  const text = useSyncExternalStore(
    (changed) => {
      watchers.add(changed);
      window.addEventListener("storage", changed); // another window of this browser
      return () => {
        watchers.delete(changed);
        window.removeEventListener("storage", changed);
      };
    },
    () => localStorage.getItem(VIEWS_KEY),
  );
  return viewsOf(text);
}

export function Views({ filters }: { filters: Filters }) {
  const kept = useKept();
  const [saving, setSaving] = useState(false);
  const at = viewAt([...BUILT_IN, ...kept], filters);
  const own = kept.find((each) => each === at);
  return (
    <nav aria-label="Views" className="list-views">
      <ul className="plain">
        {[...BUILT_IN, ...kept].map((view) => (
          <li key={view.name}>
            <Link
              to="/schedules"
              search={searchOf(view.filters) as never}
              activeOptions={{ exact: true }}
              aria-current={view === at ? "page" : undefined}
              resetScroll={false}
            >
              <bdi>{view.name}</bdi>
            </Link>
          </li>
        ))}
      </ul>
      <div className="row tight">
        {at === undefined ? (
          <Button small kind="quiet" onClick={() => setSaving(true)}>
            Save view
          </Button>
        ) : null}
        {own ? (
          <Button small kind="quiet" onClick={() => keep(kept.filter((each) => each !== own))}>
            Delete view
          </Button>
        ) : null}
        <CopyLink />
      </div>
      {saving ? <SaveView filters={filters} kept={kept} onClose={() => setSaving(false)} /> : null}
    </nav>
  );
}

function CopyLink() {
  const say = useSay();
  // The clipboard is not available without TLS; users can copy the address manually.
  if (!("clipboard" in navigator)) return null;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(window.location.href);
      say("Link copied");
    } catch {
      say("The browser blocked the copy. Copy the link from the address bar.", "warn");
    }
  };
  return (
    <Button small kind="quiet" onClick={() => void copy()}>
      Copy link
    </Button>
  );
}

function SaveView({ filters, kept, onClose }: { filters: Filters; kept: readonly View[]; onClose: () => void }) {
  const [name, setName] = useState("");
  const [wrong, setWrong] = useState<string[]>([]);
  const run = () => {
    const given = name.trim();
    if (given === "") return setWrong(["Enter a name"]);
    if (BUILT_IN.some((view) => view.name.toLowerCase() === given.toLowerCase()))
      return setWrong(["A built-in view has this name. Use another name."]);
    keep(withView(kept, { name: given, filters }));
    onClose();
  };
  return (
    <Dialog title="Save view" onClose={onClose} action={{ text: "Save", run }}>
      <TextField
        label="Name"
        hint="Saved in this browser. To share the view, copy its link."
        maxLength={LONGEST_NAME}
        value={name}
        wrong={wrong}
        onChange={(event) => {
          setName(event.target.value);
          setWrong([]);
        }}
      />
    </Dialog>
  );
}
