import { expect, test } from "vitest";
import { arriving } from "./arriving";

/** Fails so many times, and then gives "page"; the service is away for so many questions. */
function world(failures: number, away: number) {
  const said = { loads: 0, pauses: 0 };
  const load = () => {
    said.loads += 1;
    return said.loads <= failures ? Promise.reject(new TypeError(`no ${said.loads}`)) : Promise.resolve("page");
  };
  const pause = () => {
    said.pauses += 1;
    return Promise.resolve();
  };
  return { said, load, isThere: () => Promise.resolve(said.pauses >= away), pause };
}

test.each([
  ["it is there", 0, 0, 1, 0],
  ["the service was away for a moment", 1, 0, 2, 0],
  ["the service is away for long", 3, 3, 4, 3],
])("%s", async (_, failures, away, loads, pauses) => {
  const given = world(failures, away);
  expect(await arriving(given.load, given)).toBe("page");
  expect(given.said).toEqual({ loads, pauses });
});

test("what a service that answers does not have is not waited for", async () => {
  const given = world(99, 0);
  await expect(arriving(given.load, given)).rejects.toThrow("no 2");
  expect(given.said.loads).toBe(2);
});
