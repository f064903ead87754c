// What GET /stats says of inboxes.

import { get, withQuery } from "./api.js";
import { each } from "./pool.js";

export function statsOf(inbox, window, signal) {
  return get(withQuery("/stats", { inbox, window }), signal);
}

// Of several, in their order; null for one that was deleted meanwhile.
export function statsOfAll(inboxes, window, signal) {
  return each(inboxes, async (inbox) => {
    try {
      return await statsOf(inbox, window, signal);
    } catch (problem) {
      if (problem.status === 404) return null;
      throw problem;
    }
  });
}
