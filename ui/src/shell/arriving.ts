// How the code of a page is fetched while the service may be away: it waits for it, as everything else does.

/** What is asked of the world; `isThere` says whether anybody answers at all. */
export interface World {
  isThere: () => Promise<boolean>;
  pause: () => Promise<void>;
}

/**
 * Until the code is here. If it does not come from a service that answers, then a newer release has other files: the
 * router is told so, and loads the whole page anew.
 */
export async function arriving<T>(load: () => Promise<T>, { isThere, pause }: World): Promise<T> {
  for (;;) {
    try {
      return await load();
    } catch {
      if (await isThere()) return load();
    }
    await pause();
  }
}

const PAUSE_MS = 2_000;

export function worldOf(address: string): World {
  return {
    isThere: () =>
      fetch(address, { method: "HEAD", cache: "no-store" }).then(
        () => true,
        () => false,
      ),
    pause: () => new Promise((done) => setTimeout(done, PAUSE_MS)),
  };
}
