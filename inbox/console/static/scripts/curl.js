// Builds curl commands.

import { escapeInvisible } from "./exact_json.js";

// Linux limits one argument of a program to 128 KiB.
const MAX_ARGUMENT_BYTES = 100_000;

function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// Returns a command that sends the event. Invisible characters are escaped: a terminal could interpret them when pasted.
export function sendCommand(origin, eventType, payload, idempotencyKey = "") {
  const type = eventType === null ? "" : `"event_type":${JSON.stringify(eventType)},`;
  const key = idempotencyKey ? `"idempotency_key":${JSON.stringify(idempotencyKey)},` : "";
  const body = escapeInvisible(`{${type}${key}"payload":${payload}}`);
  const command = `curl -sS ${quote(`${origin}/events`)} -H "Authorization: Bearer $INBOX_API_KEY" -H 'Content-Type: application/json'`;
  return new TextEncoder().encode(body).length < MAX_ARGUMENT_BYTES
    ? `${command} -d ${quote(body)}`
    : `${command} --data-binary @- <<'END_OF_EVENT'\n${body}\nEND_OF_EVENT`;
}
