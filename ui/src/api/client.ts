// Requests to the service: typed by the OpenAPI document, with the namespace of the address and the session cookie.
import { serverDated } from "../time/now";
import { readJson } from "./json";
import type { components, paths } from "./schema";
import { withoutUnreadable, type UnreadableRow } from "./unreadable";

// Unreadable rows are removed from the lists of an answer and shown separately: see `unreadable.ts`.
type Readable<A> = A extends object
  ? {
      [K in keyof A]: A[K] extends (infer R)[] | null | undefined
        ? Exclude<R, UnreadableRow>[] | Extract<A[K], null | undefined>
        : A[K];
    }
  : A;
export type Schemas = { [K in keyof components["schemas"]]: Readable<components["schemas"][K]> };
type Verb = "get" | "post" | "put" | "patch" | "delete";
type Has<P extends keyof paths, V extends Verb> = paths[P][V] extends { responses: object } ? paths[P][V] : never;
export type PathsOf<V extends Verb> = { [P in keyof paths]: Has<P, V> extends never ? never : P }[keyof paths];
type Parameters<O> = O extends { parameters: infer A } ? A : never;
type Path<O> = Parameters<O> extends { path: infer A } ? { path: A } : { path?: undefined };
type Query<O> = Parameters<O> extends { query?: infer A } ? { query?: A } : { query?: undefined };
type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } }
  ? { body?: Sent<B> }
  : { body?: undefined };
// Fields with defaults are required in answers and optional in requests; the generated types know only the former.
export type Sent<B> = B extends unknown[] ? B : B extends object ? { [K in keyof B]?: Sent<B[K]> } : B;
export type Ask<P extends keyof paths, V extends Verb> = Path<Has<P, V>> & Query<Has<P, V>> & Body<Has<P, V>>;
type Json<C> = C extends { content: { "application/json": infer A } } ? A : unknown;
type Responses<O> = O extends { responses: infer R } ? R[keyof R] : never;
export type Answer<P extends keyof paths, V extends Verb> = Readable<Json<Responses<Has<P, V>>>>;

/** A problem that the service returned. `errors` are the errors of body fields, by path. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
    readonly errors: Readonly<Record<string, string[]>> = {},
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

/** The service did not answer. */
export class Unreachable extends Error {}

// `document.baseURI` ends in "/ui/", wherever a proxy has put the service.
export const uiBase = new URL(document.baseURI).pathname;
export const serviceBase = uiBase.replace(/ui\/$/, "");

export function addressOf(
  path: string,
  names: Record<string, unknown> = {},
  query: Record<string, unknown> = {},
): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(names[name])));
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") given.append(name, String(each));
    }
  }
  const text = given.toString();
  return serviceBase + filled.replace(/^\//, "") + (text ? `?${text}` : "");
}

/** Reject names with a slash and dot segments, which would change the path; no id has them. */
function checkNames(names: object): void {
  const wrong = Object.values(names)
    .map(String)
    .find((each) => /^\.{0,2}$|\//.test(each));
  if (wrong === undefined) return;
  throw new Refused(422, "validation_failed", `'${wrong}' is not a valid id. Use letters, digits and . _ : @ -`);
}

export function headersFor(namespace: string | undefined): Record<string, string> {
  // A header allows few characters. No namespace has others, so the service returns 404.
  return {
    "X-Horarium-Source": "ui",
    ...(namespace ? { "X-Namespace": namespace.replace(/[^!-~]/gu, encodeURIComponent) } : {}),
  };
}

export interface Extra {
  namespace?: string;
  signal?: AbortSignal;
  ifMatch?: string;
  idempotencyKey?: string;
}

export async function ask<P extends PathsOf<V>, V extends Verb>(
  verb: V,
  path: P,
  given: Ask<P, V>,
  extra: Extra = {},
): Promise<{ answer: Answer<P, V>; etag: string | null }> {
  const { path: names, query, body } = given as { path?: object; query?: object; body?: unknown };
  checkNames(names ?? {});
  const headers: Record<string, string> = headersFor(extra.namespace);
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (extra.ifMatch) headers["If-Match"] = extra.ifMatch;
  if (extra.idempotencyKey) headers["Idempotency-Key"] = extra.idempotencyKey;
  const address = addressOf(path, { ...names }, { ...query });
  const response = await reached(address, {
    method: verb.toUpperCase(),
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: extra.signal,
    credentials: "same-origin",
  });
  serverDated(response.headers.get("date"));
  const text = await response.text();
  if (!response.ok) throw refusalOf(response, text);
  const answer = withoutUnreadable(extra.namespace ?? "", address, readAnswer(text));
  return { answer: answer as Answer<P, V>, etag: response.headers.get("etag") };
}

/** Parse an answer; a proxy may return an HTML page. */
function readAnswer(text: string): unknown {
  if (text === "") return null;
  try {
    return readJson(text);
  } catch {
    throw new Unreachable("Unexpected response: not JSON. Check the address or proxy of the service.");
  }
}

async function reached(address: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(address, init);
  } catch (wrong) {
    if (wrong instanceof DOMException && wrong.name === "AbortError") throw wrong;
    throw new Unreachable("Service unreachable");
  }
}

export function refusalOf(response: Response, text: string): Refused {
  const wait = Number(response.headers.get("retry-after"));
  try {
    const said = JSON.parse(text) as Schemas["Problem"];
    const errors = { ...said.errors, ...said.validation_errors };
    return new Refused(response.status, said.reason, said.detail || said.title, errors, wait || null);
  } catch {
    return new Refused(response.status, "no_problem", `The service returned HTTP ${response.status}`, {}, wait || null);
  }
}
