// The newest events, without their payloads.

import { call, nextPage, withQuery } from "../api.js";

export const PAGE = 25;
export const MOST_SHOWN = 500;

// `amount` of them, in one answer if it can be. Large payloads, and filters that match little, make answers short: no more
// are asked for than there are pages in the amount.
export async function newest(parameters, amount, signal) {
  const events = [];
  let path = withQuery("/events", { ...parameters, limit: amount });
  let size = 0;
  for (let answers = 0; path && events.length < amount && answers < amount / PAGE; answers += 1) {
    const { text, headers } = await call(path, { signal });
    events.push(...JSON.parse(text).map(({ payload: _, ...event }) => event));
    size += text.length;
    path = nextPage(headers);
  }
  return { events: events.slice(0, amount), more: path !== null || events.length > amount, size };
}
