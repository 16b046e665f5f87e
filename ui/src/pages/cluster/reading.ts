// Read answers that are not JSON with status 200: metrics are text, and a service that is not ready answers 503.
import { useQuery } from "@tanstack/react-query";
import { addressOf, headersFor, refusalOf, Unreachable, type Schemas } from "../../api/client";
import type { Failure } from "../../api/hooks";
import { useNamespace } from "../../api/session";

const EVERY_MS = 5_000;

async function read(path: string, namespace: string, signal: AbortSignal, also: readonly number[]): Promise<string> {
  let response: Response;
  try {
    response = await fetch(addressOf(path), { headers: headersFor(namespace), signal, credentials: "same-origin" });
  } catch (wrong) {
    if (wrong instanceof DOMException && wrong.name === "AbortError") throw wrong;
    throw new Unreachable("Service unreachable");
  }
  const text = await response.text();
  if (!response.ok && !also.includes(response.status)) throw refusalOf(response, text);
  return text;
}

export function useReadiness() {
  const namespace = useNamespace();
  return useQuery<Schemas["Health"], Failure>({
    queryKey: [namespace, "/readyz"],
    queryFn: async ({ signal }) => JSON.parse(await read("/readyz", namespace, signal, [503])) as Schemas["Health"],
    refetchInterval: EVERY_MS,
  });
}

export function useMetrics(enabled: boolean) {
  const namespace = useNamespace();
  return useQuery<string, Failure>({
    queryKey: [namespace, "/metrics"],
    queryFn: ({ signal }) => read("/metrics", namespace, signal, []),
    refetchInterval: EVERY_MS,
    enabled,
  });
}
