// Lines for a shell.

import { visible } from "./exact_json.js";

// One argument of a program may have 128 KiB on Linux.
const LONGEST_ARGUMENT_BYTES = 100_000;

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// Sends this event again. Where the line is pasted, a terminal might obey what cannot be seen in it.
export function sendLine(origin, eventType, payload, idempotencyKey = "") {
  const type = eventType === null ? "" : `"event_type":${JSON.stringify(eventType)},`;
  const key = idempotencyKey ? `"idempotency_key":${JSON.stringify(idempotencyKey)},` : "";
  const body = visible(`{${type}${key}"payload":${payload}}`);
  const head = `curl -sS ${quoted(`${origin}/events`)} -H "Authorization: Bearer $INBOX_API_KEY" -H 'Content-Type: application/json'`;
  return new TextEncoder().encode(body).length < LONGEST_ARGUMENT_BYTES
    ? `${head} -d ${quoted(body)}`
    : `${head} --data-binary @- <<'END_OF_EVENT'\n${body}\nEND_OF_EVENT`;
}
