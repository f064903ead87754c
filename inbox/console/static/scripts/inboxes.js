// The tenant's inboxes.

import { get } from "./api.js";
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
