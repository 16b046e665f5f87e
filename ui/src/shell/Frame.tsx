// The frame around every page: navigation, user, namespace, time zone, theme and connection state.
import { Link, Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { Fragment, useCallback, useEffect, useState } from "react";
import { ALL_NAMESPACES, PAGES_OF_ALL, useOfAll } from "../api/everywhere";
import { useRead } from "../api/hooks";
import { useConnection, useLive } from "../api/live";
import { useMay, useNamespace, useSession, useSignOut } from "../api/session";
import { useUnreadable } from "../api/unreadable";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { focusPage, useFocus } from "../parts/focus";
import { JobRegion, useJobList, useJobs } from "../parts/JobProgress";
import { isActive } from "../parts/jobs";
import { useNarrowTables } from "../parts/tables";
import { useSay } from "../parts/Toasts";
import { browserZone, chooseZone, useViewerZone } from "../time/zones";
import { Emblem } from "./Emblem";
import { Help } from "./Help";
import { useKeys, type PlacePath } from "./keys";
import { chooseTheme, useTheme, type Theme } from "./theme";

const MAIN = [
  ["/", "Overview"],
  ["/schedules", "Schedules"],
  ["/runs", "Runs"],
  ["/approvals", "Approvals"],
] as const;
const RESOURCES = [
  ["/workflows", "Workflows"],
  ["/calendars", "Calendars"],
  ["/agents", "Agents and Teams"],
] as const;
const ADMIN = [
  ["/access", "Access"],
  ["/audit", "Audit"],
  ["/cluster", "Cluster"],
] as const;

export function Frame() {
  useLive();
  useFocus();
  useNarrowTables();
  const namespace = useNamespace();
  const navigate = useNavigate();
  const [open, setOpen] = useState(false);
  const [help, setHelp] = useState(false);
  useKeys({
    go: useCallback((path: PlacePath) => void navigate({ to: path }), [navigate]),
    help: useCallback(() => setHelp(true), []),
  });
  return (
    <div className="frame">
      {/* The base element would make a fragment link open another page. */}
      <a
        className="skip-link"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          focusPage();
        }}
      >
        Skip to content
      </a>
      <header className="side">
        <div className="head">
          <Link to="/" className="brand">
            <Emblem /> Horarium
          </Link>
          <Button small className="menu-button" aria-expanded={open} onClick={() => setOpen(!open)}>
            Menu
          </Button>
        </div>
        <Navigation
          open={open}
          onGo={() => {
            if (open) focusPage(); // the focused link is hidden now
            setOpen(false);
          }}
        />
        <Who open={open} onHelp={() => setHelp(true)} />
      </header>
      <div className="main">
        <JobRegion />
        <LostBanner />
        <UnreadableBanner />
        <TopBar />
        <main id="content" className="content" tabIndex={-1}>
          <Fragment key={namespace}>
            <Outlet />
          </Fragment>
        </main>
      </div>
      {help ? <Help onClose={() => setHelp(false)} /> : null}
    </div>
  );
}

function Navigation({ open, onGo }: { open: boolean; onGo: () => void }) {
  const reads = useMay("read");
  const waiting = useRead("/api/approvals", { query: { status: "pending", page_size: 100 } }, { enabled: reads });
  const many = waiting.data?.approvals.length ?? 0;
  return (
    <nav aria-label="Main" className={open ? "open" : undefined} onClick={onGo}>
      <ul className="plain">
        {MAIN.map(([to, text]) => (
          <Place key={to} to={to} text={text} count={to === "/approvals" ? many : 0} />
        ))}
      </ul>
      <h2>Resources</h2>
      <ul className="plain">
        {RESOURCES.map(([to, text]) => (
          <Place key={to} to={to} text={text} />
        ))}
      </ul>
      <h2>Admin</h2>
      <ul className="plain">
        {ADMIN.map(([to, text]) => (
          <Place key={to} to={to} text={text} />
        ))}
      </ul>
    </nav>
  );
}

function Place({ to, text, count = 0 }: { to: PlacePath; text: string; count?: number }) {
  return (
    <li>
      <Link
        to={to}
        activeOptions={{ exact: to === "/", includeSearch: false }}
        activeProps={{ "aria-current": "page" }}
      >
        <span>{text}</span>
        {count > 0 ? (
          <span className="badge tone-warn">
            {count >= 100 ? "99+" : count}
            <span className="visually-hidden"> pending</span>
          </span>
        ) : null}
      </Link>
    </li>
  );
}

function Who({ open, onHelp }: { open: boolean; onHelp: () => void }) {
  const session = useSession();
  const signOut = useSignOut();
  const say = useSay();
  const jobs = useJobs();
  const active = useJobList().some(isActive);
  const [asking, setAsking] = useState(false);
  const leave = () => void signOut().catch((wrong: Error) => say(`Sign-out failed: ${wrong.message}`, "bad"));
  const stopAndLeave = () => {
    jobs.endAll();
    setAsking(false);
    leave();
  };
  return (
    <div className={open ? "who open" : "who"}>
      <div className="small cut" title={`${session.principal} (${session.role})`}>
        {session.principal} <span className="muted">· {session.role}</span>
      </div>
      <div className="row tight">
        <Button small kind="quiet" onClick={onHelp}>
          Shortcuts
        </Button>
        <Button small kind="quiet" onClick={() => (active ? setAsking(true) : leave())}>
          Sign out
        </Button>
      </div>
      {asking ? (
        <Dialog
          title="Sign out?"
          onClose={() => setAsking(false)}
          action={{ text: "Stop and sign out", kind: "danger", run: stopAndLeave }}
        >
          <p>A bulk action is in progress. Signing out stops it before the next page; completed changes are kept.</p>
        </Dialog>
      ) : null}
    </div>
  );
}

function TopBar() {
  const navigate = useNavigate();
  const [text, setText] = useState("");
  return (
    <div className="top">
      <form
        role="search"
        className="search"
        onSubmit={(event) => {
          event.preventDefault();
          void navigate({ to: "/schedules", search: { text: text || undefined } as never });
          focusPage(); // so that j moves to the first result
        }}
      >
        <input
          className="input"
          style={{ width: "100%", maxWidth: "none" }}
          data-search
          type="search"
          aria-label="Search schedules"
          placeholder="Search schedules ( / )"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </form>
      <NamespaceSwitch />
      <ZoneSwitch />
      <ThemeSwitch />
    </div>
  );
}

function NamespaceSwitch() {
  const session = useSession();
  const namespace = useNamespace();
  const navigate = useNavigate();
  const ofAll = useOfAll();
  const path = useLocation({ select: ({ pathname }) => pathname });
  const hasAll = session.everywhere && PAGES_OF_ALL.includes(path);
  const choose = (chosen: string) =>
    void (chosen === ALL_NAMESPACES
      ? navigate({ to: path as PlacePath, search: { all: true } as never })
      : navigate({ to: "/", search: { ns: chosen } as never }));
  if (session.namespaces.length < 2)
    return (
      <span className="badge" title={namespace}>
        {namespace}
      </span>
    );
  return (
    <select
      className="input"
      aria-label="Namespace"
      value={ofAll && hasAll ? ALL_NAMESPACES : namespace}
      onChange={(event) => choose(event.target.value)}
    >
      {hasAll ? <option value={ALL_NAMESPACES}>All namespaces</option> : null}
      {[...new Set([...session.namespaces, namespace])].map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  );
}

function ZoneSwitch() {
  const zone = useViewerZone();
  const own = browserZone();
  const all = [...new Set([own, "UTC", zone, ...useAllZones()])];
  return (
    <select
      className="input rare"
      aria-label="Time zone"
      value={zone}
      onChange={(event) => chooseZone(event.target.value === own ? null : event.target.value)}
    >
      {all.map((each) => (
        <option key={each} value={each}>
          {each === own ? `${each} (local)` : each}
        </option>
      ))}
    </select>
  );
}

const ZONES_MS = 500;

/** Load the hundreds of zones after the page content. */
function useAllZones(): readonly string[] {
  const [all, setAll] = useState<readonly string[]>([]);
  useEffect(() => {
    const planned = setTimeout(() => setAll(Intl.supportedValuesOf("timeZone")), ZONES_MS);
    return () => clearTimeout(planned);
  }, []);
  return all;
}

function ThemeSwitch() {
  const theme = useTheme();
  return (
    <select
      className="input rare"
      aria-label="Theme"
      value={theme}
      onChange={(event) => chooseTheme(event.target.value as Theme)}
    >
      <option value="system">System</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}

function UnreadableBanner() {
  const rows = useUnreadable(useNamespace());
  if (rows.length === 0) return null;
  const count = rows.length === 1 ? "1 row" : `${rows.length} rows`;
  return (
    <details className="banner">
      <summary>Unreadable data: {count}</summary>
      <ul>
        {rows.map((row) => (
          <li key={`${row.id} ${row.detail}`}>
            {row.id}: {row.detail}
          </li>
        ))}
      </ul>
    </details>
  );
}

function LostBanner() {
  const connection = useConnection();
  return (
    <div role="status">
      {connection === "lost" ? (
        <div className="banner">Connection lost. Data may be outdated. Reconnecting…</div>
      ) : null}
    </div>
  );
}
