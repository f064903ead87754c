'use strict';

const { randomUUID } = require('node:crypto');

const { matcher, outputFields, record, sample } = require('../events');
const { call } = require('../service');

// Zapier holds back the runs of a poll that brings more.
const MOST_TAKEN = 100;
// What Zapier's editor asks for.
const SHOWN = 3;
const PAGE = 500;
// Zapier's memory holds 105,000 ids, and it waits for 30 seconds.
const MOST_REMEMBERED = 100_000;
const REMEMBERING_MS = 15_000;

/** Events, the newest first; changes nothing. */
const peek = (z, inbox, params) => call(z, { url: '/events', params: { inbox, limit: PAGE, ...params } });

/** For the editor: what was taken already too, since an inbox that a Zap empties has nothing else to show. */
const show = async (z, inbox, types, limit) => {
  // Where not every event will do, some more are looked through.
  const { data } = await peek(z, inbox, types.length ? {} : { limit: Math.min(limit, PAGE) });
  return data.map(record).filter(matcher(types)).slice(0, limit);
};

/** Whatever waits while the Zap is turned on: what Zapier is not told of here, it runs later. */
const remember = async (z, inbox) => {
  const began = Date.now();
  const records = [];
  for (let cursor, isFirst = true; isFirst || cursor; isFirst = false) {
    if (records.length >= MOST_REMEMBERED || Date.now() - began > REMEMBERING_MS) {
      throw new z.errors.Error(
        `More than ${records.length} events wait in the inbox ${inbox}. Empty it, or choose another one.`,
        'too-many-events',
        409,
      );
    }
    const response = await peek(z, inbox, { status: 'undelivered', ...(cursor && { cursor }) });
    const page = response.data.map(record);
    // After the first page the ids have to do, because Zapier takes 20 MB at most.
    records.push(...(isFirst ? page : page.map(({ id }) => ({ id }))));
    cursor = nextCursor(response);
  }
  return records;
};

const nextCursor = (response) => {
  const [, target] = /<([^>]+)>; rel="next"/.exec(response.getHeader('Link') ?? '') ?? [];
  return target && new URL(target, 'http://service').searchParams.get('cursor');
};

/** For the runs of the Zap: from now on these events are delivered. */
const take = async (z, inbox, types) => {
  const { data } = await call(z, {
    url: `/inbox/${encodeURIComponent(inbox)}`,
    params: { limit: MOST_TAKEN },
    // The same for every try: where an answer was lost, the next try gets its events.
    headers: { 'Inbox-Attempt': randomUUID() },
  });
  // They come oldest first, and Zapier wants the newest first.
  return data.map(record).filter(matcher(types)).reverse();
};

const perform = async (z, { inputData, meta = {} }) => {
  const inbox = inputData.inbox || 'default';
  const types = [inputData.event_types ?? []].flat().filter(Boolean);
  if (meta.isPopulatingDedupe) return remember(z, inbox);
  // Zapier gives a limit where it wants some events to look at, and -1 where it runs the Zap.
  if (meta.isLoadingSample || meta.limit > 0) return show(z, inbox, types, meta.limit > 0 ? meta.limit : SHOWN);
  return take(z, inbox, types);
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
          'The Zap takes the events out of this inbox. Give each Zap an inbox of its own: two that share one ' +
          'get a part of the events each.',
      },
      {
        key: 'event_types',
        label: 'Event Types',
        type: 'string',
        list: true,
        required: false,
        placeholder: 'order.*',
        helpText:
          'Only events of these types trigger the Zap; `*` stands for any characters, and nothing here for every ' +
          'event. Others are taken out of the inbox all the same: where they are many, let the inbox itself have ' +
          'the types.',
      },
    ],
    perform,
    outputFields,
    sample,
  },
};
