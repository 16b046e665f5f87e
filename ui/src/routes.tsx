// The address of every page. The code of a page is loaded when it is first opened.
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  retainSearchParams,
} from "@tanstack/react-router";
import { uiBase } from "./api/client";
import { App } from "./shell/App";
import { Loading } from "./parts/Shown";
import { arriving, worldOf } from "./shell/arriving";
import { Crashed, NotThere } from "./shell/Wrong";

/** `ns` stays in every address, so that a shared link opens the same namespace. */
export interface RootSearch {
  ns?: string;
}

/** Return the namespace as text: the router reads `?ns=123` as a number. */
function namespaceOf(given: unknown): string | undefined {
  if (given === undefined || given === null || given === "") return undefined;
  const text = typeof given === "string" ? given : JSON.stringify(given);
  return text.replace(/\p{Surrogate}/gu, "\ufffd"); // a lone surrogate cannot be encoded
}

const root = createRootRoute({
  component: App,
  notFoundComponent: NotThere,
  errorComponent: Crashed,
  validateSearch: (search: Record<string, unknown>): RootSearch & Record<string, unknown> => ({
    ...search,
    ns: namespaceOf(search["ns"]),
  }),
  search: { middlewares: [retainSearchParams(["ns"])] },
});

const world = worldOf(uiBase);
type PageModule = Promise<{ default: () => React.JSX.Element }>;

function page<P extends string>(path: P, load: () => PageModule) {
  return createRoute({
    getParentRoute: () => root,
    path,
    component: lazyRouteComponent(() => arriving(load, world)),
    pendingComponent: Loading,
  });
}

const tree = root.addChildren([
  page("/", () => import("./pages/now/Now")),
  page("/schedules", () => import("./pages/schedules/Schedules")),
  page("/schedules/new", () => import("./pages/edit/Create")),
  page("/schedules/$scheduleId", () => import("./pages/schedule/Schedule")),
  page("/schedules/$scheduleId/edit", () => import("./pages/edit/Edit")),
  page("/runs", () => import("./pages/runs/Runs")),
  page("/runs/$runId", () => import("./pages/run/Run")),
  page("/approvals", () => import("./pages/approvals/Approvals")),
  page("/approvals/$approvalId", () => import("./pages/approvals/Approval")),
  page("/workflows", () => import("./pages/workflows/Workflows")),
  page("/workflows/$workflowId", () => import("./pages/workflows/Workflow")),
  page("/calendars", () => import("./pages/calendars/Calendars")),
  page("/calendars/$name", () => import("./pages/calendars/Calendar")),
  page("/agents", () => import("./pages/agents/Agents")),
  page("/agents/$agentId", () => import("./pages/agents/Agent")),
  page("/teams/$teamId", () => import("./pages/agents/Team")),
  page("/access", () => import("./pages/access/Access")),
  page("/audit", () => import("./pages/audit/Audit")),
  page("/cluster", () => import("./pages/cluster/Cluster")),
]);

export const router = createRouter({
  routeTree: tree,
  basepath: uiBase,
  defaultPreload: "intent",
  // Shown inside the frame, so that navigation still works.
  defaultErrorComponent: Crashed,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
