// Repeating, cancelling and limiting asynchronous work.

const MAX_BACKOFF_MS = 30_000;

// Runs `action` until the signal aborts, and pauses while the tab is hidden. If `action` returns a number, that is the
// minimum delay until the next run. Failures back off exponentially.
export async function repeatUntilAborted(action, intervalMs, signal) {
  let failures = 0;
  while (!signal.aborted) {
    let minimumMs = 0;
    try {
      minimumMs = (await action()) ?? 0;
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (!error.title) throw error;
      failures += 1;
    }
    await sleep(Math.max(minimumMs, Math.min(intervalMs * 2 ** failures, MAX_BACKOFF_MS)), signal);
    await pageVisible(signal);
  }
}

export function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function pageVisible(signal) {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) return resolve();
    const check = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    signal.addEventListener("abort", check, { once: true });
  });
}

// Returns a function that aborts the signal it returned before and returns a new one, so that a late response never
// overwrites a newer one. All of them abort with `signal`.
export function supersedingSignals(signal) {
  let last = new AbortController();
  return () => {
    last.abort();
    last = new AbortController();
    return AbortSignal.any([signal, last.signal]);
  };
}

// Stops at the first failure.
export async function mapConcurrently(items, action, maxConcurrent = 4) {
  const results = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      try {
        results[index] = await action(items[index]);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(maxConcurrent, items.length) }, worker));
  return results;
}
