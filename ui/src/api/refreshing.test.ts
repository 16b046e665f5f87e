import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Refused } from "./client";
import { refresher } from "./refreshing";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A query that is watched, whose answers take so long; its answers are 1, 2, 3 … in the order of the questions. */
async function watched({ takes, live = true }: { takes: number; live?: boolean }) {
  const queries = new QueryClient();
  let asked = 0;
  const queryFn = async () => {
    const own = ++asked;
    await new Promise((done) => setTimeout(done, takes));
    return own;
  };
  const observer = new QueryObserver(queries, { queryKey: ["x"], queryFn, meta: { live } });
  const stop = observer.subscribe(() => undefined);
  await vi.advanceTimersByTimeAsync(takes);
  expect(observer.getCurrentResult().data).toBe(1);
  return { queries, observer, stop, asked: () => asked };
}

test("many events are one question", async () => {
  const { queries, stop, asked } = await watched({ takes: 10 });
  const tell = refresher(queries, () => false);
  for (let many = 0; many < 100; many++) tell();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked()).toBe(2);
  stop();
});

test("answers that take longer than events are apart come all the same, and the last event is in the last of them", async () => {
  const { queries, observer, stop, asked } = await watched({ takes: 3_500 });
  const tell = refresher(queries, () => false);
  for (let second = 0; second < 20; second++) {
    tell();
    await vi.advanceTimersByTimeAsync(1_000);
  }
  const meanwhile = observer.getCurrentResult().data ?? 0;
  expect(meanwhile).toBeGreaterThan(3);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(observer.getCurrentResult().data).toBe(asked());
  expect(asked()).toBeGreaterThan(meanwhile);
  expect(asked()).toBeLessThan(10);
  stop();
});

test("a hidden page asks for nothing, and knows that what it shows is old", async () => {
  const { queries, observer, stop, asked } = await watched({ takes: 10 });
  refresher(queries, () => true)();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked()).toBe(1);
  expect(observer.getCurrentResult().isStale).toBe(true);
  stop();
});

test("what was refused stays told for a while, however much happens meanwhile", async () => {
  const queries = new QueryClient();
  const queryFn = vi.fn(() => Promise.reject(new Refused(500, "internal", "it broke")));
  const observer = new QueryObserver(queries, { queryKey: ["x"], queryFn, retry: false, meta: { live: true } });
  const stop = observer.subscribe(() => undefined);
  const tell = refresher(queries, () => false);
  for (let second = 0; second < 25; second++) {
    tell();
    await vi.advanceTimersByTimeAsync(1_000);
  }
  expect(observer.getCurrentResult().status).toBe("error");
  expect(queryFn.mock.calls.length).toBeGreaterThan(1); // it may be well again by now
  expect(queryFn.mock.calls.length).toBeLessThan(5);
  stop();
});

test("what is not live is left alone", async () => {
  const { queries, stop, asked } = await watched({ takes: 10, live: false });
  refresher(queries, () => false)();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked()).toBe(1);
  stop();
});
