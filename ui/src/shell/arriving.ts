// Load the code of a page, and wait while the service is unreachable.

/** The environment; `isThere` returns whether the service responds at all. */
export interface World {
  isThere: () => Promise<boolean>;
  pause: () => Promise<void>;
}

/**
 * Retry until the code is loaded. If the service responds but lacks the file, a newer release is deployed: the error
 * makes the router reload the page.
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
