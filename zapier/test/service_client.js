'use strict';

// The running service, as the tests around Zapier use it: they send, make inboxes and keys.

const { randomUUID } = require('node:crypto');

const { INBOX_URL: url, INBOX_API_KEY: key, INBOX_SLOW_API_KEY: slowKey } = process.env;

const authData = { url, api_key: key };

const ask = async (method, path, body) => {
  const response = await fetch(url + path, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.status === 204 ? null : response.json();
};

/** The ids of events that were sent one after the other, with `n` from 1 on. */
const send = async (count, event_type = 'order.created') => {
  const events = Array.from({ length: count }, (_, index) => ({ event_type, payload: { n: index + 1 } }));
  return (await ask('POST', '/events/batch', events)).map(({ id }) => id);
};

/** A new inbox, which has no event yet. By default it takes events of its own types only, which `send` sends it. */
const newInbox = async (event_types) => {
  const name = `zap-${randomUUID()}`;
  await ask('PUT', `/inboxes/${name}`, { event_types: event_types ?? [`${name}.*`] });
  return { name, send: (count, kind = 'created') => send(count, `${name}.${kind}`) };
};

module.exports = { authData, slowKey, ask, newInbox, send };
