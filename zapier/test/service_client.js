'use strict';

// Requests that tests send to the service outside of Zapier.

const { randomUUID } = require('node:crypto');

const { INBOX_URL: url, INBOX_API_KEY: key, INBOX_RATE_LIMITED_API_KEY: rateLimitedKey } = process.env;

const authData = { url, api_key: key };

const request = async (method, path, body) => {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.status === 204 ? null : response.json();
};

/** Sends events with `n` from 1 to `count`, and returns their IDs in order. */
const send = async (count, event_type = 'order.created') => {
  const events = Array.from({ length: count }, (_, index) => ({ event_type, payload: { n: index + 1 } }));
  return (await request('POST', '/events/batch', events)).map(({ id }) => id);
};

/** Creates an empty inbox and returns its name and a `send` for it. By default it receives only what that `send` sends. */
const createInbox = async (event_types) => {
  const name = `zap-${randomUUID()}`;
  await request('PUT', `/inboxes/${name}`, { event_types: event_types ?? [`${name}.*`] });
  return { name, send: (count, kind = 'created') => send(count, `${name}.${kind}`) };
};

module.exports = { authData, rateLimitedKey, request, createInbox, send };
