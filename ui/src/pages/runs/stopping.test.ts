import { describe, expect, it } from "vitest";
import { BEFORE, standingText, stopOn, type Standing, type StopPage } from "./stopping";

function outcome(run_id: string, message: string | null = null) {
  return { run_id, schedule_id: "s", state: "queued", outcome: "cancelled", message } as StopPage["outcomes"][number];
}

/** A service with so many pages of two runs each, which fails at the page `wrong` the first time. */
function service(pages: number, wrong = -1) {
  const asked: (string | null)[] = [];
  let broken = wrong;
  const ask = (token: string | null): Promise<StopPage> => {
    asked.push(token);
    const at = Number(token ?? 0);
    if (at === broken) {
      broken = -1;
      return Promise.reject(new Error("no connection"));
    }
    const outcomes = [outcome(`${at}a`), outcome(`${at}b`)];
    return Promise.resolve({ outcomes, next_page_token: at + 1 < pages ? String(at + 1) : null });
  };
  return { ask, asked };
}

async function stopped(from: Standing, ask: (token: string | null) => Promise<StopPage>, isHalted = () => false) {
  const seen: Standing[] = [];
  await stopOn(from, ask, (now) => seen.push(now), isHalted);
  return seen;
}

describe("stopOn", () => {
  it("goes on to the last page, however many there are", async () => {
    const { ask, asked } = service(501);
    const seen = await stopped(BEFORE, ask);
    expect(asked.length).toBe(501);
    expect(seen.at(-1)!.phase).toBe("done");
    expect(standingText(seen.at(-1)!)).toBe("1,002 cancelled");
    expect(standingText(seen[1]!)).toBe("So far: 2 cancelled");
  });

  it("asks for the same page again after a failure, and counts on", async () => {
    const { ask, asked } = service(3, 1);
    const failed = (await stopped(BEFORE, ask)).at(-1)!;
    expect([failed.phase, failed.failure?.message]).toEqual(["failed", "no connection"]);
    expect(standingText(failed)).toBe("Not all of them: 2 cancelled. There are more.");
    const [again, ...rest] = await stopped(failed, ask);
    expect([again!.phase, again!.failure]).toEqual(["working", null]);
    expect(standingText(rest.at(-1)!)).toBe("6 cancelled");
    expect(asked).toEqual([null, "1", "1", "2"]);
  });

  it("is halted between two pages, says that there are more, and goes on from there", async () => {
    const { ask, asked } = service(3);
    const halted = (await stopped(BEFORE, ask, () => true)).at(-1)!;
    expect([halted.phase, halted.token]).toEqual(["halted", "1"]);
    expect(standingText(halted)).toBe("Not all of them: 2 cancelled. There are more.");
    expect((await stopped(halted, ask)).at(-1)!.phase).toBe("done");
    expect(asked).toEqual([null, "1", "2"]);
  });

  it("is done where the last page was asked for, halted or not", async () => {
    expect((await stopped(BEFORE, service(1).ask, () => true)).at(-1)!.phase).toBe("done");
  });

  it("shows no more refusals than can be read, and counts them all", async () => {
    const outcomes = Array.from({ length: 30 }, (_, at) => outcome(String(at), "it is over"));
    const end = (await stopped(BEFORE, () => Promise.resolve({ outcomes, next_page_token: null }))).at(-1)!;
    expect([end.wrong.length, end.wrongs]).toEqual([20, 30]);
  });

  it("says so where nothing was left", async () => {
    const end = (await stopped(BEFORE, () => Promise.resolve({ outcomes: [], next_page_token: null }))).at(-1)!;
    expect(standingText(end)).toBe("nothing was left to stop");
  });
});
