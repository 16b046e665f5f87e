import { expect, test } from "vitest";
import { isCount } from "./CountField";
import {
  Jobs,
  NOTHING_DONE,
  statusText,
  tallied,
  tallyText,
  type Item,
  type Job,
  type JobPage,
  type Plan,
} from "./jobs";

const item = (id: string, failure: string | null = null): Item => ({
  id,
  outcome: failure === null ? "paused" : "failed",
  failure,
});

/** Pages of two objects each; every page waits for `next`, and `failing` rejects once. */
function pages(count: number, failing = -1) {
  let at = 0;
  let broken = failing;
  const asked: [number, boolean][] = [];
  let open: (() => void) | null = null;
  const nextPage = async (confirm: boolean): Promise<JobPage> => {
    asked.push([at, confirm]);
    await new Promise<void>((done) => (open = done));
    if (at === broken) {
      broken = -1;
      throw new Error("no connection");
    }
    at += 1;
    return { items: [item(`${at}a`), item(`${at}b`)], isLast: at === count };
  };
  const plan: Plan = { title: "Pause", kind: "schedule", namespace: "n", total: 2 * count, nextPage };
  const next = async () => {
    open!();
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  };
  return { plan, asked, next };
}

const only = (jobs: Jobs): Job => jobs.list()[0]!;

test("a job continues to its last page after its dialog has closed", async () => {
  let ended = 0;
  const jobs = new Jobs(() => (ended += 1));
  const { plan, next } = pages(3);
  const jobId = jobs.start(plan);
  expect(statusText(only(jobs))).toBe("In progress");
  await next();
  jobs.closeDialog(jobId);
  expect([only(jobs).inDialog, statusText(only(jobs))]).toEqual([false, "In progress: 2 paused"]);
  await next();
  await next();
  expect([only(jobs).phase, statusText(only(jobs)), ended]).toEqual(["done", "Done: 6 paused", 1]);
  jobs.dismiss(jobId);
  expect(jobs.list()).toEqual([]);
});

test("the end of a job that the dialog has shown is not shown again", async () => {
  const jobs = new Jobs();
  const { plan, next } = pages(1);
  const jobId = jobs.start(plan);
  await next();
  jobs.closeDialog(jobId);
  expect(jobs.list()).toEqual([]);
});

test("a job stops between two pages and continues with the next one", async () => {
  const jobs = new Jobs();
  const { plan, asked, next } = pages(2);
  const jobId = jobs.start(plan);
  jobs.stop(jobId);
  expect(only(jobs).phase).toBe("stopping");
  await next();
  expect([only(jobs).phase, statusText(only(jobs))]).toEqual(["stopped", "Stopped: 2 paused"]);
  jobs.resume(jobId);
  jobs.resume(jobId); // a second press starts nothing
  await next();
  expect([only(jobs).phase, asked.map(([at]) => at)]).toEqual(["done", [0, 1]]);
});

test("a stop during the last page ends as done", async () => {
  const jobs = new Jobs();
  const { plan, next } = pages(1);
  jobs.stop(jobs.start(plan));
  await next();
  expect(only(jobs).phase).toBe("done");
});

test("a failed page is processed again, with the confirmation if one was given", async () => {
  const jobs = new Jobs();
  const { plan, asked, next } = pages(2, 1);
  const jobId = jobs.start(plan);
  await next();
  await next();
  expect([only(jobs).phase, only(jobs).error?.message]).toEqual(["failed", "no connection"]);
  jobs.resume(jobId, true);
  expect([only(jobs).phase, only(jobs).error]).toEqual(["working", null]);
  await next();
  expect([statusText(only(jobs)), asked]).toEqual([
    "Done: 4 paused",
    [
      [0, false],
      [1, false],
      [1, true],
    ],
  ]);
});

test("no page of an earlier session follows its end", async () => {
  const jobs = new Jobs();
  const { plan, asked, next } = pages(2);
  jobs.start(plan);
  jobs.endAll();
  await next();
  expect([jobs.list(), asked.length]).toEqual([[], 1]);
});

test("outcomes are counted, failures last, and no more are kept than can be read", () => {
  const first = tallied(NOTHING_DONE, [item("a"), item("b", "no"), { ...item("c"), outcome: "buffer_full" }]);
  expect(tallyText(tallied(first, [item("d")]))).toBe("2 paused, 1 buffer full, 1 failed");
  const many = tallied(
    first,
    Array.from({ length: 500 }, (_, at) => item(String(at), "no")),
  );
  expect([many.total, many.failed, many.failures.length]).toEqual([503, 501, 200]);
  expect(tallyText(NOTHING_DONE)).toBe("nothing changed");
});

test.each([
  ["1204", true],
  [" 1,204 ", true],
  ["1 204", true],
  ["120", false],
  ["", false],
  ["1204.0", false],
])("%j is the number 1204: %s", (text, matches) => {
  expect(isCount(text, 1204)).toBe(matches);
});
