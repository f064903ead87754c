'use strict';

const { entered, eventIdIn, inboxIn, outputFields, record, sample } = require('../events');
const { call } = require('../client');

// Zapier goes on with the first.
const MOST_FOUND = 10;

const perform = async (z, { inputData }) => {
  const [event_type, status] = [entered(inputData.event_type), entered(inputData.status)];
  const inbox = inboxIn(inputData);
  const id = eventIdIn(inputData.event_id);
  if (!id) {
    const params = { inbox, limit: MOST_FOUND, ...(event_type && { event_type }), ...(status && { status }) };
    return (await call(z, { url: '/events', params })).data.map(record);
  }
  // Nothing else is an id, and some of it would be another path.
  if (!/^[0-9a-f-]{36}$/i.test(id)) return [];
  const response = await call(z, { url: `/events/${id}`, params: { inbox }, mayBeMissing: true });
  return response.status === 404 ? [] : [record(response.data)];
};

module.exports = {
  key: 'find_event',
  noun: 'Event',
  display: {
    label: 'Find Event',
    description: 'Finds an event by its ID, or the newest ones by type and status.',
  },
  operation: {
    inputFields: [
      {
        key: 'event_id',
        label: 'Event ID',
        type: 'string',
        required: false,
        helpText: 'With an ID, Event Type and Status are ignored.',
      },
      {
        key: 'event_type',
        label: 'Event Type',
        type: 'string',
        required: false,
        placeholder: 'order.created',
        helpText: 'The whole type, without `*`.',
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
        helpText: 'An event has a status of its own in each inbox. Leave it empty for the inbox `default`.',
      },
    ],
    perform,
    outputFields,
    sample,
  },
};
