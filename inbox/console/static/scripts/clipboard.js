// Copy buttons, and the curl command that sends an event.

import { button } from "./controls.js";
import { el, topmostDialog } from "./dom.js";
import { escapeInvisible } from "./exact_json.js";
import { showToast } from "./messages.js";

// Linux limits one argument of a program to 128 KiB.
const MAX_ARGUMENT_BYTES = 100_000;

// Returns true if the text was copied.
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyWithSelection(text);
  }
}

// Browsers refuse the clipboard API on plain HTTP, except on localhost.
function copyWithSelection(text) {
  const focused = document.activeElement;
  const area = el("textarea", { class: "visually-hidden", "aria-hidden": "true", readonly: true });
  area.value = text;
  // While a modal dialog is open, only elements inside it can be selected.
  (topmostDialog() ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}

// Returns a button that copies the result of `getText()`. `describedBy` is the ID of an element that tells this button apart
// from others with the same label.
export function copyButton(getText, { label = "Copy", classes = "small", describedBy = null, message = "Copied" } = {}) {
  return button(label, async () => {
    const copied = await copy(getText());
    showToast(copied ? message : "Your browser blocked copying. Select the text and copy it manually.");
  }, classes, { "aria-describedby": describedBy });
}

function quoteForShell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// Returns the body of a request that sends the event. Inserts the payload as it is: JSON.stringify could change its numbers.
export function eventBody(eventType, payload, idempotencyKey) {
  const type = eventType ? `"event_type":${JSON.stringify(eventType)},` : "";
  const key = idempotencyKey ? `"idempotency_key":${JSON.stringify(idempotencyKey)},` : "";
  return `{${type}${key}"payload":${payload}}`;
}

// Returns a command that sends the event. Invisible characters are escaped: a terminal could interpret them when pasted.
export function sendCommand(eventType, payload, idempotencyKey) {
  const body = escapeInvisible(eventBody(eventType, payload, idempotencyKey));
  const command = `curl -sS ${quoteForShell(`${location.origin}/events`)} -H "Authorization: Bearer $INBOX_API_KEY" -H 'Content-Type: application/json'`;
  return new TextEncoder().encode(body).length < MAX_ARGUMENT_BYTES
    ? `${command} -d ${quoteForShell(body)}`
    : `${command} --data-binary @- <<'END_OF_EVENT'\n${body}\nEND_OF_EVENT`;
}
