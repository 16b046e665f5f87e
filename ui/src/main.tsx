// The entry point of the app.
import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { createRoot } from "react-dom/client";
import { Refused, Unreachable } from "./api/client";
import { JobsProvider } from "./parts/JobProgress";
import { router } from "./routes";
import { askEarly } from "./shell/early";
import { beginTheme } from "./shell/theme";
import "./styles";

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    // A 401 ends the session on all pages: the sign-in form is shown.
    onError: (wrong) => {
      if (wrong instanceof Refused && wrong.status === 401) queries.setQueryData(["session"], null);
    },
  }),
  defaultOptions: {
    // A machine without a network can still reach a local service. A write that is not delivered fails at once instead
    // of being sent much later.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      refetchOnReconnect: true,
      retry: (times, wrong) =>
        (wrong instanceof Unreachable || (wrong instanceof Refused && wrong.status >= 500)) && times < 2,
      refetchOnWindowFocus: true,
    },
  },
});

beginTheme();
void askEarly(queries, router.latestLocation);
createRoot(document.getElementById("root")!).render(
  <QueryClientProvider client={queries}>
    <JobsProvider>
      <RouterProvider router={router} />
    </JobsProvider>
  </QueryClientProvider>,
);
