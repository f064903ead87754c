// Event types: validation and display.

import { el, userText } from "../dom.js";

const EVENT_TYPE = /^[A-Za-z0-9._:/-]*$/;
const MAX_LENGTH = 128;

// Returns what is wrong with a typed event type, or "". It may be empty.
export function eventTypeError(text) {
  const type = text.trim();
  if (!EVENT_TYPE.test(type)) return "Use letters, digits and . _ : / - only.";
  return type.length > MAX_LENGTH ? `Use up to ${MAX_LENGTH} characters.` : "";
}

export function eventTypeLabel(type) {
  return type === null ? el("span", { class: "faint" }, "(no type)") : userText(type);
}
