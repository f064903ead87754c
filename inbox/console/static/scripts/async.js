// Does something again and again, while somebody is looking.

const LONGEST_PAUSE_MS = 30_000;

// `act` says how many ms to wait at least, if it wants more than `pauseMs`. One that fails is tried again, ever more slowly.
export async function repeat(act, pauseMs, signal) {
  let failures = 0;
  while (!signal.aborted) {
    let wanted = 0;
    try {
      wanted = (await act()) ?? 0;
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (!error.title) throw error;
      failures += 1;
    }
    await pause(Math.max(wanted, Math.min(pauseMs * 2 ** failures, LONGEST_PAUSE_MS)), signal);
    await seen(signal);
  }
}

export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function seen(signal) {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) return resolve();
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look, { once: true });
  });
}

// Of several looks at the same thing only the latest counts: what came late would show what was.

// Each call lets go of what the one before has asked for, and gives the signal of the next look. All end with `signal`.
export function latest(signal) {
  let last = new AbortController();
  return () => {
    last.abort();
    last = new AbortController();
    return AbortSignal.any([signal, last.signal]);
  };
}

// Many calls, a few at a time.

// The first that fails is the last.
export async function each(items, act, atOnce = 4) {
  const results = new Array(items.length);
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const place = next++;
      try {
        results[place] = await act(items[place]);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  return results;
}
