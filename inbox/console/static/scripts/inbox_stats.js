// The tenant's inboxes.

import { get, withQuery } from "./api.js";
import { each } from "./async.js";
import { badge } from "./controls.js";
import { el } from "./dom.js";

export const DEFAULT = "default";

// `default` comes first.
export async function allInboxes(signal) {
  const [first, named] = await Promise.all([get(`/inboxes/${DEFAULT}`, signal), get("/inboxes", signal)]);
  return [first, ...named];
}

// Only `default` can be off, and only it says whether it is.
export function isOff(inbox) {
  return inbox.enabled === false;
}

export function marked(inbox, name) {
  return isOff(inbox) ? el("span", { class: "line" }, name, " ", badge("off")) : name;
}

// What GET /stats says of inboxes.

export const WINDOWS = [["24h", "24 hours"], ["7d", "7 days"], ["30d", "30 days"]];

export function statsOf(inbox, window, signal) {
  return get(withQuery("/stats", { inbox, window }), signal);
}

// Of several, as they come: `of(inbox)` is what is known by now, if anything.
export function figures(window) {
  const known = new Map();

  // `told()` is called after each answer. Who was asked longest ago comes first, so that what a rate limit has cut short
  // goes on with the next round.
  async function refresh(inboxes, signal, told) {
    const asked = [...known.keys()];
    await each(inboxes.toSorted((one, other) => asked.indexOf(one) - asked.indexOf(other)), async (inbox) => {
      const stats = await statsOrNone(inbox, window, signal);
      known.delete(inbox);
      known.set(inbox, stats);
      told();
    });
  }
  return { of: (inbox) => known.get(inbox) ?? null, refresh };
}

// None of one that was deleted meanwhile.
async function statsOrNone(inbox, window, signal) {
  try {
    return await statsOf(inbox, window, signal);
  } catch (problem) {
    if (problem.status === 404) return null;
    throw problem;
  }
}
