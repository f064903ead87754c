'use strict';

const { eventIdIn, outputFields, record, sample } = require('../events');
const { call } = require('../service');

// Zapier goes on with the first.
const MOST_FOUND = 10;

const perform = async (z, { inputData }) => {
  const { event_id, event_type, status } = inputData;
  const inbox = inputData.inbox || 'default';
  if (event_id) {
    const url = `/events/${encodeURIComponent(eventIdIn(event_id))}`;
    const response = await call(z, { url, params: { inbox }, mayBeMissing: true });
    return response.status === 404 ? [] : [record(response.data)];
  }
  const params = { inbox, limit: MOST_FOUND, ...(event_type && { event_type }), ...(status && { status }) };
  return (await call(z, { url: '/events', params })).data.map(record);
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
        helpText: 'Where it is given, the other fields but Inbox are not looked at.',
      },
      { key: 'event_type', label: 'Event Type', type: 'string', required: false, placeholder: 'order.created' },
      {
        key: 'status',
        label: 'Status',
        type: 'string',
        required: false,
        choices: ['undelivered', 'leased', 'delivered', 'dead'],
      },
      {
        key: 'inbox',
        label: 'Inbox',
        type: 'string',
        dynamic: 'inbox_list.id.name',
        required: false,
        helpText: 'An event has a status of its own in each inbox. Nothing here is the inbox `default`.',
      },
    ],
    perform,
    outputFields,
    sample,
  },
};
