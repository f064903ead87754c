'use strict';

const { outputFields, parseEventId, parseInbox, sample, toRecord, trimmed } = require('../events');
const { call } = require('../client');

// Zapier uses the first result.
const MAX_FOUND = 10;

const perform = async (z, { inputData }) => {
  const [event_type, status] = [trimmed(inputData.event_type), trimmed(inputData.status)];
  const inbox = parseInbox(inputData);
  const id = parseEventId(inputData.event_id);
  if (!id) {
    const params = { inbox, limit: MAX_FOUND, ...(event_type && { event_type }), ...(status && { status }) };
    return (await call(z, { url: '/events', params })).data.map(toRecord);
  }
  // Other text is not an event ID, and could name another path.
  if (!/^[0-9a-f-]{36}$/i.test(id)) return [];
  const response = await call(z, { url: `/events/${id}`, params: { inbox }, allowNotFound: true });
  return response.status === 404 ? [] : [toRecord(response.data)];
};

module.exports = {
  key: 'find_event',
  noun: 'Event',
  display: {
    label: 'Find Event',
    description: 'Finds an event by its ID, or the newest event by type and status.',
  },
  operation: {
    inputFields: [
      {
        key: 'event_id',
        label: 'Event ID',
        type: 'string',
        required: false,
        helpText: 'If set, Event Type and Status are ignored.',
      },
      {
        key: 'event_type',
        label: 'Event Type',
        type: 'string',
        required: false,
        placeholder: 'order.created',
        helpText: 'The exact type. `*` is not supported.',
      },
      {
        key: 'status',
        label: 'Status',
        type: 'string',
        required: false,
        choices: { undelivered: 'Undelivered', leased: 'Leased', delivered: 'Delivered', dead: 'Dead' },
      },
      {
        key: 'inbox',
        label: 'Inbox',
        type: 'string',
        dynamic: 'inbox_list.id.name',
        required: false,
        helpText: 'An event has a separate status in each inbox. Leave empty for the inbox `default`.',
      },
    ],
    perform,
    outputFields,
    sample,
  },
};
