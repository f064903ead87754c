'use strict';

// Converts events to Zapier's records, and reads the input fields that several steps share.

/**
 * Returns Zapier's record of an event. Zapier deduplicates by `id`, so the `id` contains the number of the delivery: it is
 * the same before and after a poll, and changes when the event is replayed.
 */
const toRecord = (event) => {
  const delivery = event.status === 'delivered' ? event.deliveries : event.deliveries + 1;
  return {
    id: `${event.id}:${delivery}`,
    event_id: event.id,
    event_type: event.event_type,
    created_at: event.created_at,
    timestamp: event.timestamp,
    status: event.status,
    payload: event.payload,
  };
};

/** Returns the trimmed value of a field, or '' if it is empty. */
const trimmed = (value) => String(value ?? '').trim();

const parseInbox = (inputData) => trimmed(inputData.inbox) || 'default';

/** Returns the event ID. Accepts an event ID or a record's `id`. */
const parseEventId = (id) => trimmed(id).split(':')[0];

/** Returns the patterns of a list field. Each entry may contain several. */
const parsePatterns = (z, field) => {
  const patterns = [field ?? []].flat().flatMap((text) => trimmed(text).split(/[\s,]+/)).filter(Boolean);
  const invalid = patterns.find((pattern) => !/^[A-Za-z0-9._:/*-]{1,128}$/.test(pattern));
  if (invalid) {
    const message = `"${invalid}" is not a valid event type. Use up to 128 letters, digits and . _ : / -, and * for any characters.`;
    throw new z.errors.Error(message, 'invalid-event-type', 422);
  }
  return patterns;
};

/** Returns a predicate for events whose type matches one of the patterns. Without patterns, all events match. */
const matcher = (patterns) => ({ event_type: type }) =>
  patterns.length === 0 || (type !== null && patterns.some((pattern) => matches(pattern, type)));

/** Returns true if the pattern matches. Compares piece by piece: a regular expression with many `.*` can take minutes. */
const matches = (pattern, type) => {
  const [first, ...pieces] = pattern.split('*');
  if (pieces.length === 0) return type === pattern;
  const last = pieces.pop();
  if (!type.startsWith(first)) return false;
  let end = first.length;
  for (const piece of pieces) {
    const start = type.indexOf(piece, end);
    if (start < 0) return false;
    end = start + piece.length;
  }
  return type.length - last.length >= end && type.endsWith(last);
};

const storedFields = [
  { key: 'event_type', label: 'Event Type', type: 'string' },
  { key: 'created_at', label: 'Created At', type: 'datetime' },
  { key: 'timestamp', label: 'Timestamp (Milliseconds)', type: 'integer' },
  { key: 'status', label: 'Status', type: 'string' },
];

const outputFields = [
  { key: 'id', label: 'Delivery ID', type: 'string', primary: true },
  { key: 'event_id', label: 'Event ID', type: 'string' },
  ...storedFields,
];

const storedSample = {
  id: 'd3aac242-ddcb-4545-8ef5-df261c6bebfa',
  event_type: 'order.created',
  timestamp: 1794794204539,
  created_at: '2026-11-16T01:56:44.539Z',
  status: 'undelivered',
  deliveries: 0,
};

/** Shown in the editor if the inbox has no events. */
const sample = toRecord({
  ...storedSample,
  status: 'delivered',
  deliveries: 1,
  payload: { order: 1001, customer: { name: 'Ada', email: 'ada@example.com' } },
});

module.exports = {
  toRecord,
  trimmed,
  parseInbox,
  parseEventId,
  parsePatterns,
  matcher,
  storedFields,
  outputFields,
  sample,
  storedSample,
};
