// Lists inboxes and loads their statistics.

import { getJson, withQuery } from "./api.js";
import { mapConcurrently } from "./async.js";
import { badge } from "./controls.js";
import { el } from "./dom.js";

export const DEFAULT_INBOX = "default";
export const WINDOWS = [["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];

// Returns all inboxes, `default` first.
export async function listInboxes(signal) {
  const [first, named] = await Promise.all([getJson(`/inboxes/${DEFAULT_INBOX}`, signal), getJson("/inboxes", signal)]);
  return [first, ...named];
}

// Only `default` can be disabled.
export function isDisabled(inbox) {
  return inbox.enabled === false;
}

export function inboxLabel(inbox, content) {
  return isDisabled(inbox) ? el("span", { class: "line" }, content, " ", badge("disabled")) : content;
}

export function getStats(name, window, signal) {
  return getJson(withQuery("/stats", { inbox: name, window }), signal);
}

// Returns a cache of the latest statistics of each inbox. `get(name)` returns null if they are not loaded yet.
export function statsCache(window) {
  const cache = new Map();

  // Calls `onupdate` after each response. The least recently loaded inboxes come first, so that a round that was cut
  // short by a rate limit continues with the next one.
  async function refresh(names, signal, onupdate) {
    const loaded = [...cache.keys()];
    await mapConcurrently(names.toSorted((one, other) => loaded.indexOf(one) - loaded.indexOf(other)), async (name) => {
      const stats = await getStats(name, window, signal).catch((problem) => {
        // Another program deleted the inbox.
        if (problem.status !== 404) throw problem;
        return null;
      });
      cache.delete(name);
      cache.set(name, stats);
      onupdate();
    });
  }
  return { get: (name) => cache.get(name) ?? null, refresh };
}
