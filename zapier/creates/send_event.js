'use strict';

const { randomUUID } = require('node:crypto');

const { entered, storedSample } = require('../events');
const { call } = require('../client');

/** The payload as JSON. What was entered as JSON stays as it is, number for number, unless something is put on top. */
const payloadOf = (z, json, data) => {
  let document;
  try {
    document = JSON.parse(json || '{}');
  } catch (error) {
    throw new z.errors.Error(`The field JSON is not JSON: ${error.message}`, 'not-json', 400);
  }
  if (document === null || typeof document !== 'object' || Array.isArray(document)) {
    throw new z.errors.Error('The field JSON has to be an object: {…}', 'not-json', 400);
  }
  if (typeof data !== 'object' || Array.isArray(data)) {
    throw new z.errors.Error('The field Data takes names and values.', 'invalid-data', 422);
  }
  return json && Object.keys(data).length === 0 ? json : JSON.stringify({ ...document, ...data });
};

const perform = async (z, { inputData }) => {
  const [event_type, key, json] = ['event_type', 'idempotency_key', 'json'].map((field) => entered(inputData[field]));
  const members = {
    event_type: event_type || null,
    // One of our own where there is none, so that a try whose answer was lost can be repeated.
    idempotency_key: key || randomUUID(),
  };
  const envelope = `{"payload":${payloadOf(z, json, inputData.data ?? {})},${JSON.stringify(members).slice(1)}`;
  const request = {
    url: '/events',
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    // As bytes, because Zapier refuses a text in which somebody has written {{bundle.…}}.
    body: Buffer.from(envelope),
  };
  return (await call(z, request, { acts: true })).data;
};

module.exports = {
  key: 'send_event',
  noun: 'Event',
  display: {
    label: 'Send Event',
    description: 'Sends an event to every inbox that takes its type.',
  },
  operation: {
    inputFields: [
      {
        key: 'event_type',
        label: 'Event Type',
        type: 'string',
        required: false,
        placeholder: 'order.created',
        helpText: 'What kind of event it is. Up to 128 letters, digits and `. _ : / -`.',
      },
      {
        key: 'data',
        label: 'Data',
        dict: true,
        required: false,
        helpText: 'What the event says, as names and values.',
      },
      {
        key: 'json',
        label: 'JSON',
        type: 'text',
        required: false,
        placeholder: '{"order": 1001, "lines": [{"sku": "A1"}]}',
        helpText: 'For developers: what the event says, as a JSON object. Values in Data are added to it, and win.',
      },
      {
        key: 'idempotency_key',
        label: 'Idempotency Key',
        type: 'string',
        required: false,
        helpText:
          'Something that only this event has, such as an order number. Sent again with it, the event is not stored twice.',
      },
    ],
    perform,
    outputFields: [
      { key: 'id', label: 'Event ID', type: 'string', primary: true },
      { key: 'event_type', label: 'Event Type', type: 'string' },
      { key: 'created_at', label: 'Created At', type: 'datetime' },
      { key: 'timestamp', label: 'Timestamp (Milliseconds)', type: 'integer' },
      { key: 'status', label: 'Status', type: 'string' },
    ],
    sample: storedSample,
  },
};
