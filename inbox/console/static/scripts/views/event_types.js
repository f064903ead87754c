// The type of an event: what it may be, and how it is shown.

import { el, foreign } from "../dom.js";

export const EVENT_TYPE = /^[A-Za-z0-9._:/-]{1,128}$/;

export function shownType(type) {
  return type === null ? el("span", { class: "faint" }, "(no type)") : foreign(type);
}
