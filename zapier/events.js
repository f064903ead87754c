'use strict';

// Events as Zapier gets them.

/**
 * Zapier drops what it has seen by `id`. So an event has one id for each time that it is handed out: the same before,
 * when it is only looked at, and after, but another one once it is replayed.
 */
const record = (event) => {
  const time = event.status === 'delivered' ? event.deliveries : event.deliveries + 1;
  return {
    id: `${event.id}:${time}`,
    event_id: event.id,
    event_type: event.event_type,
    created_at: event.created_at,
    timestamp: event.timestamp,
    status: event.status,
    payload: event.payload,
  };
};

/** What somebody has entered in a field, without blanks around it; nothing where they have not. */
const entered = (value) => String(value ?? '').trim();

const inboxIn = (inputData) => entered(inputData.inbox) || 'default';

/** The event's own id, in what may be either. */
const eventIdIn = (id) => entered(id).split(':')[0];

/** The patterns in a field for several, of which one may have been given several too. */
const patternsIn = (z, field) => {
  const patterns = [field ?? []].flat().flatMap((text) => entered(text).split(/[\s,]+/)).filter(Boolean);
  const odd = patterns.find((pattern) => !/^[A-Za-z0-9._:/*-]{1,128}$/.test(pattern));
  if (odd) {
    const words = `No event type can match "${odd}": it takes letters, digits and . _ : / - and * for any characters.`;
    throw new z.errors.Error(words, 'invalid-event-type', 422);
  }
  return patterns;
};

/** Whether one of the patterns fits, in which `*` stands for any characters; without patterns every event does. */
const matcher = (patterns) => ({ event_type: type }) =>
  patterns.length === 0 || (type !== null && patterns.some((pattern) => fits(pattern, type)));

/** Piece by piece: a regular expression with many `.*` may take minutes. */
const fits = (pattern, type) => {
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

const outputFields = [
  { key: 'id', label: 'ID of This Delivery', type: 'string', primary: true },
  { key: 'event_id', label: 'Event ID', type: 'string' },
  { key: 'event_type', label: 'Event Type', type: 'string' },
  { key: 'created_at', label: 'Created At', type: 'datetime' },
  { key: 'timestamp', label: 'Timestamp (Milliseconds)', type: 'integer' },
  { key: 'status', label: 'Status', type: 'string' },
];

const storedSample = {
  id: 'd3aac242-ddcb-4545-8ef5-df261c6bebfa',
  event_type: 'order.created',
  timestamp: 1794794204539,
  created_at: '2026-11-16T01:56:44.539Z',
  status: 'undelivered',
  deliveries: 0,
};

/** For an inbox that has nothing to show yet. */
const sample = record({
  ...storedSample,
  status: 'delivered',
  deliveries: 1,
  payload: { order: 1001, customer: { name: 'Ada', email: 'ada@example.com' } },
});

module.exports = {
  record,
  entered,
  inboxIn,
  eventIdIn,
  patternsIn,
  matcher,
  outputFields,
  sample,
  storedSample,
};
