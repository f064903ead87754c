'use strict';

const { randomUUID } = require('node:crypto');

const { inboxIn, matcher, outputFields, patternsIn, record, sample } = require('../events');
const { call, deadlineFromNow } = require('../client');

// Zapier holds back the runs of a poll that brings more.
const MOST_TAKEN = 100;
// Zapier refuses results of more than about 6 MB, and their events would be lost. So a few are taken at a time, as many as
// fit by the largest that has come, until there are enough or the time is up.
const ENOUGH_BYTES = 3_000_000;
const FIRST_TAKEN = 3;
const AT_A_TIME = 10;
const TAKING_MS = 10_000;
// What Zapier's editor asks for.
const SHOWN = 3;
const PAGE = 500;
// Zapier's memory holds 105,000 ids.
const MOST_REMEMBERED = 100_000;
const ONE_MORE_PAGE_MS = 3_000;

/** Events, the newest first; changes nothing. */
const peek = (z, inbox, params, how) => call(z, { url: '/events', params: { inbox, limit: PAGE, ...params } }, how);

/** For the editor: what was taken already too, since an inbox that a Zap empties has nothing else to show. */
const show = async (z, inbox, types, limit) => {
  // Where not every event will do, some more are looked through.
  const { data } = await peek(z, inbox, types.length ? {} : { limit: Math.min(limit, PAGE) });
  return data.map(record).filter(matcher(types)).slice(0, limit);
};

/** The ids of whatever waits while the Zap is turned on: what Zapier is not told of here, it runs later. */
const remember = async (z, inbox) => {
  const deadline = deadlineFromNow();
  const ids = [];
  // What somebody has leased may come back.
  for (const status of ['undelivered', 'leased']) {
    let cursor;
    do {
      const response = await peek(z, inbox, { status, ...(cursor && { cursor }) }, { patient: true, deadline });
      for (const event of response.data) ids.push({ id: record(event).id });
      cursor = nextCursor(response);
      if (cursor && (ids.length >= MOST_REMEMBERED || Date.now() > deadline - ONE_MORE_PAGE_MS)) {
        const words = `More than ${ids.length} events wait in the inbox ${inbox}.`;
        throw new z.errors.Error(`${words} Empty it, or choose another one.`, 'too-many-events', 409);
      }
    } while (cursor);
  }
  return ids;
};

const nextCursor = (response) => {
  const [, target] = /<([^>]+)>; rel="next"/.exec(response.getHeader('Link') ?? '') ?? [];
  return target && new URL(target, 'http://service').searchParams.get('cursor');
};

/** For the runs of the Zap: from now on these events are delivered. */
const take = async (z, inbox, types) => {
  const deadline = deadlineFromNow();
  const began = Date.now();
  const [taken, sizes] = [[], []];
  for (let limit = FIRST_TAKEN; limit > 0; limit = Math.min(AT_A_TIME, MOST_TAKEN - taken.length, fitting(sizes))) {
    let response;
    try {
      response = await takeSome(z, inbox, limit, deadline);
    } catch (error) {
      // What was taken before has to run; what is wrong will be said by the next poll.
      if (taken.length > 0) break;
      throw error;
    }
    const records = response.data.map(record);
    taken.push(...records);
    sizes.push(...records.map((each) => Buffer.byteLength(JSON.stringify(each))));
    if (response.getHeader('Inbox-More') !== 'true' || Date.now() - began > TAKING_MS) break;
  }
  // They come oldest first, and Zapier wants the newest first.
  return taken.filter(matcher(types)).reverse();
};

/** How many more there is room for, by the largest of those that have come. */
const fitting = (sizes) => {
  const room = sizes.reduce((left, size) => left - size, ENOUGH_BYTES);
  return sizes.length ? Math.floor(room / Math.max(...sizes)) : FIRST_TAKEN;
};

const takeSome = (z, inbox, limit, deadline) => {
  // The same for every try: where an answer was lost, the next try gets its events.
  const headers = { 'Inbox-Attempt': randomUUID() };
  const request = { url: `/inbox/${encodeURIComponent(inbox)}`, params: { limit }, headers };
  return call(z, request, { acts: true, deadline });
};

const perform = async (z, bundle) => {
  const { inputData } = bundle;
  const meta = bundle.meta ?? {};
  const inbox = inboxIn(inputData);
  // Before anything is taken: a mistyped type would take events out of the inbox and run nothing.
  const types = patternsIn(z, inputData.event_types);
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
          'The Zap takes events out of this inbox. Give each Zap an inbox of its own: where two share one, each ' +
          'gets only some of the events.',
      },
      {
        key: 'event_types',
        label: 'Event Types',
        type: 'string',
        list: true,
        required: false,
        placeholder: 'order.*',
        helpText:
          'Which types of events trigger the Zap, such as `order.created` or `order.*`, where `*` stands for any ' +
          'characters. Leave it empty for every event. Events of other types are taken out of the inbox too, and ' +
          'do nothing.',
      },
    ],
    perform,
    outputFields,
    sample,
  },
};
