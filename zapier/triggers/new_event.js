'use strict';

const { randomUUID } = require('node:crypto');

const { matcher, outputFields, parseInbox, parsePatterns, sample, toRecord } = require('../events');
const { call, deadlineFromNow } = require('../client');

// If a poll returns more, Zapier holds its runs until the user confirms them.
const MAX_EVENTS = 100;
// Zapier rejects results larger than about 6 MB, and their events would be lost. The trigger polls in small batches, sized
// by the largest event so far, until it has MAX_EVENTS or MAX_POLLING_MS have passed.
const TARGET_BYTES = 3_000_000;
const FIRST_BATCH_SIZE = 3;
const MAX_BATCH_SIZE = 10;
const MAX_POLLING_MS = 10_000;
const EDITOR_LIMIT = 3;
const PAGE_SIZE = 500;
// Zapier's deduplication remembers 105,000 IDs.
const MAX_REMEMBERED = 100_000;
// Time to reserve for another page before the deadline.
const PAGE_BUDGET_MS = 3_000;

/** Lists events, newest first, without changing them. */
const listEvents = (z, inbox, params, options) => call(z, { url: '/events', params: { inbox, limit: PAGE_SIZE, ...params } }, options);

/** Returns events for the editor, including delivered ones: a Zap empties its inbox. */
const listEditorEvents = async (z, inbox, patterns, limit) => {
  // With a type filter, searches a whole page.
  const { data } = await listEvents(z, inbox, patterns.length ? {} : { limit: Math.min(limit, PAGE_SIZE) });
  return data.map(toRecord).filter(matcher(patterns)).slice(0, limit);
};

/** Returns the IDs of all undelivered and leased events when the Zap is turned on. Zapier does not run the Zap for these. */
const listPendingIds = async (z, inbox) => {
  const deadline = deadlineFromNow();
  const ids = [];
  // Leased events may become undelivered again.
  for (const status of ['undelivered', 'leased']) {
    let cursor;
    do {
      const response = await listEvents(z, inbox, { status, ...(cursor && { cursor }) }, { waitForRateLimit: true, deadline });
      for (const event of response.data) ids.push({ id: toRecord(event).id });
      cursor = parseNextCursor(response);
      if (cursor && (ids.length >= MAX_REMEMBERED || Date.now() > deadline - PAGE_BUDGET_MS)) {
        const message = `The inbox ${inbox} contains more than ${ids.length} undelivered or leased events. Empty it or choose another inbox.`;
        throw new z.errors.Error(message, 'too-many-events', 409);
      }
    } while (cursor);
  }
  return ids;
};

const parseNextCursor = (response) => {
  const [, target] = /<([^>]+)>; rel="next"/.exec(response.getHeader('Link') ?? '') ?? [];
  return target && new URL(target, 'http://service').searchParams.get('cursor');
};

/** Polls events, which marks them delivered, and returns the records that run the Zap. */
const poll = async (z, inbox, patterns) => {
  const deadline = deadlineFromNow();
  const start = Date.now();
  const [records, sizes] = [[], []];
  for (let limit = FIRST_BATCH_SIZE; limit > 0; limit = Math.min(MAX_BATCH_SIZE, MAX_EVENTS - records.length, countRemaining(sizes))) {
    let response;
    try {
      response = await pollBatch(z, inbox, limit, deadline);
    } catch (error) {
      // Earlier batches are already delivered, so their runs must start. The next poll reports the error.
      if (records.length > 0) break;
      throw error;
    }
    const batch = response.data.map(toRecord);
    records.push(...batch);
    sizes.push(...batch.map((each) => Buffer.byteLength(JSON.stringify(each))));
    if (response.getHeader('Inbox-More') !== 'true' || Date.now() - start > MAX_POLLING_MS) break;
  }
  // Polls return the oldest event first, and Zapier expects the newest first.
  return records.filter(matcher(patterns)).reverse();
};

/** Returns the number of events that still fit, assuming the size of the largest so far. */
const countRemaining = (sizes) => {
  const bytesLeft = sizes.reduce((rest, size) => rest - size, TARGET_BYTES);
  return sizes.length ? Math.floor(bytesLeft / Math.max(...sizes)) : FIRST_BATCH_SIZE;
};

const pollBatch = (z, inbox, limit, deadline) => {
  // Every retry has the same attempt: if a response is lost, the retry returns the same events.
  const headers = { 'Inbox-Attempt': randomUUID() };
  const request = { url: `/inbox/${encodeURIComponent(inbox)}`, params: { limit }, headers };
  return call(z, request, { mustComplete: true, deadline });
};

const perform = async (z, bundle) => {
  const { inputData } = bundle;
  const meta = bundle.meta ?? {};
  const inbox = parseInbox(inputData);
  // Validated before polling: an invalid type would empty the inbox without running the Zap.
  const patterns = parsePatterns(z, inputData.event_types);
  if (meta.isPopulatingDedupe) return listPendingIds(z, inbox);
  // In the editor, Zapier sets a positive limit. For runs of the Zap it is -1.
  if (meta.isLoadingSample || meta.limit > 0) return listEditorEvents(z, inbox, patterns, meta.limit > 0 ? meta.limit : EDITOR_LIMIT);
  return poll(z, inbox, patterns);
};

module.exports = {
  key: 'new_event',
  noun: 'Event',
  display: {
    label: 'New Event',
    description: 'Triggers when a new event arrives in an inbox.',
  },
  operation: {
    type: 'polling',
    inputFields: [
      {
        key: 'inbox',
        label: 'Inbox',
        type: 'string',
        dynamic: 'inbox_list.id.name',
        default: 'default',
        required: true,
        altersDynamicFields: false,
        helpText:
          'The Zap removes events from this inbox. Use a separate inbox for each Zap: Zaps that share one each ' +
          'receive only some of the events.',
      },
      {
        key: 'event_types',
        label: 'Event Types',
        type: 'string',
        list: true,
        required: false,
        placeholder: 'order.*',
        helpText:
          'The event types that trigger the Zap, such as `order.created` or `order.*`. `*` matches any characters. ' +
          'Leave empty for all events. Events of other types are removed from the inbox too, without running the Zap.',
      },
    ],
    perform,
    outputFields,
    sample,
  },
};
