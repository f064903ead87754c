// Hash routes: #/events?status=dead is the view `events` with its filters, so that reload and Back work.

import { withQuery } from "./api.js";

const OVERLAY = "over";

export function parseHash(hash) {
  const [name, query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { name, query: Object.fromEntries(new URLSearchParams(query)) };
}

export function hashFor(name, query = {}) {
  return withQuery(`#/${name}`, query);
}

// Adds a history entry for something shown over the view, such as a drawer. Back closes it.
export function openOverlay(name, query) {
  location.hash = hashFor(name, query);
  history.replaceState(OVERLAY, "");
}

export function isOverlay() {
  return history.state === OVERLAY;
}

// Changes the URL without a history entry or a hashchange event.
export function replaceHash(name, query) {
  history.replaceState(null, "", hashFor(name, query));
}
