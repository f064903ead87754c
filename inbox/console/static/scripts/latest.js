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
