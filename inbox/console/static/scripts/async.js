// Repeating, cancelling and limiting asynchronous work.

const MAX_BACKOFF_MS = 30_000;

// Returns {start, stop}: `start()` calls `load(signal)` repeatedly, `stop()` aborts it. Starting again aborts the previous
// run. Calls pause while the tab is hidden. If `load` returns a number, it is the minimum delay until the next call, in
// milliseconds. Failures are passed to `onproblem`, and the delay after them grows exponentially.
export function repeater(load, intervalMs, signal, onproblem) {
  const nextSignal = supersedingSignals(signal);

  async function start() {
    const runSignal = nextSignal();
    let failures = 0;
    while (!runSignal.aborted) {
      let minimumMs = 0;
      try {
        minimumMs = (await load(runSignal)) ?? 0;
        failures = 0;
      } catch (problem) {
        if (runSignal.aborted) return;
        onproblem(problem);
        if (!problem.title) throw problem;
        failures += 1;
      }
      await sleep(Math.max(minimumMs, Math.min(intervalMs * 2 ** failures, MAX_BACKOFF_MS)), runSignal);
      await waitUntilVisible(runSignal);
    }
  }
  return { start, stop: nextSignal };
}

export function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

async function waitUntilVisible(signal) {
  while (document.hidden && !signal.aborted) await new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true });
    signal.addEventListener("abort", resolve, { once: true });
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

// Returns the results of `action(item)` in the order of the items. Stops at the first failure.
export async function mapConcurrently(items, action, maxConcurrent = 4) {
  const results = [];
  // All workers share one generator. A worker that fails ends it for the others.
  const queue = (function* () { yield* items.entries(); })();
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await action(item);
  };
  await Promise.all(Array.from({ length: maxConcurrent }, worker));
  return results;
}
