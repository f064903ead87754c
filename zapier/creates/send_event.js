'use strict';

const { randomUUID } = require('node:crypto');

const { storedFields, storedSample, trimmed } = require('../events');
const { call } = require('../client');

/** Returns the payload as JSON. Without Data, the JSON field is sent unchanged, down to the digits of its numbers. */
const buildPayload = (z, json, data) => {
  let document;
  try {
    document = JSON.parse(json || '{}');
  } catch (error) {
    throw new z.errors.Error(`JSON is not valid: ${error.message}`, 'not-json', 400);
  }
  if (document === null || typeof document !== 'object' || Array.isArray(document)) {
    throw new z.errors.Error('JSON must be an object: {…}', 'not-json', 400);
  }
  if (typeof data !== 'object' || Array.isArray(data)) {
    throw new z.errors.Error('Data must contain names and values.', 'invalid-data', 422);
  }
  return json && Object.keys(data).length === 0 ? json : JSON.stringify({ ...document, ...data });
};

const perform = async (z, { inputData }) => {
  const [event_type, key, json] = ['event_type', 'idempotency_key', 'json'].map((field) => trimmed(inputData[field]));
  const members = {
    event_type: event_type || null,
    // Lets the request be repeated if its response is lost.
    idempotency_key: key || randomUUID(),
  };
  const envelope = `{"payload":${buildPayload(z, json, inputData.data ?? {})},${JSON.stringify(members).slice(1)}`;
  const request = {
    url: '/events',
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    // Bytes, because Zapier rejects text that contains {{bundle.…}}.
    body: Buffer.from(envelope),
  };
  return (await call(z, request, { mustComplete: true })).data;
};

module.exports = {
  key: 'send_event',
  noun: 'Event',
  display: {
    label: 'Send Event',
    description: 'Sends an event to your inboxes.',
  },
  operation: {
    inputFields: [
      {
        key: 'event_type',
        label: 'Event Type',
        type: 'string',
        required: false,
        placeholder: 'order.created',
        helpText: 'What happened. Up to 128 letters, digits and `. _ : / -`.',
      },
      {
        key: 'data',
        label: 'Data',
        dict: true,
        required: false,
        helpText: 'The payload, as names and values.',
      },
      {
        key: 'json',
        label: 'JSON',
        type: 'text',
        required: false,
        placeholder: '{"order": 1001, "lines": [{"sku": "A1"}]}',
        helpText: 'For developers: the payload as a JSON object. Values in Data are added to it and override it.',
      },
      {
        key: 'idempotency_key',
        label: 'Idempotency Key',
        type: 'string',
        required: false,
        helpText:
          'A value unique to this event, such as an order number. Sending the event again with it does not store it twice.',
      },
    ],
    perform,
    outputFields: [
      { key: 'id', label: 'Event ID', type: 'string', primary: true },
      ...storedFields,
    ],
    sample: storedSample,
  },
};
