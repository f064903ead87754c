'use strict';

const { randomUUID } = require('node:crypto');

const { call } = require('../service');

const parsed = (z, text) => {
  let document;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw new z.errors.Error(`"JSON" is not JSON: ${error.message}`, 'not-json', 400);
  }
  if (document === null || typeof document !== 'object' || Array.isArray(document)) {
    throw new z.errors.Error('"JSON" has to be an object: {…}', 'not-json', 400);
  }
  return document;
};

const perform = async (z, { inputData }) => {
  const { event_type, data, json, idempotency_key } = inputData;
  const payload = { ...(json ? parsed(z, json) : {}), ...data };
  const envelope = {
    payload,
    event_type: event_type || null,
    // One of our own where there is none, so that a try whose answer was lost can be repeated.
    idempotency_key: idempotency_key || randomUUID(),
  };
  const response = await call(z, {
    url: '/events',
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    // As bytes, because Zapier refuses a text in which somebody has written {{bundle.…}}.
    body: Buffer.from(JSON.stringify(envelope)),
  });
  return response.data;
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
        helpText: 'Letters, digits and `. _ : / -`, at most 128 of them.',
      },
      {
        key: 'data',
        label: 'Data',
        dict: true,
        required: false,
        helpText: 'The members of the payload, each as text.',
      },
      {
        key: 'json',
        label: 'JSON',
        type: 'text',
        required: false,
        placeholder: '{"order": 1001, "lines": [{"sku": "A1"}]}',
        helpText: 'The payload as a JSON object, where it has numbers or levels. What is in Data is put on top of it.',
      },
      {
        key: 'idempotency_key',
        label: 'Idempotency Key',
        type: 'string',
        required: false,
        helpText: 'What there is one event of, such as the number of an order: sent twice, it is stored once.',
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
    sample: {
      id: 'd3aac242-ddcb-4545-8ef5-df261c6bebfa',
      event_type: 'order.created',
      timestamp: 1794794204539,
      created_at: '2026-11-16T01:56:44.539Z',
      status: 'undelivered',
      deliveries: 0,
    },
  },
};
