'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { startServer } = require('./fake_servers');
const { request, authData, createInbox, send, rateLimitedKey } = require('./service_client');
const { App, SimulatedZap, appTester } = require('./simulated_zap');

const authenticate = (given) => appTester(App.authentication.test, { authData: { ...authData, ...given } });
const sendEvent = (inputData, given = authData) =>
  appTester(App.creates.send_event.operation.perform, { authData: given, inputData });
const findEvent = (inputData) => appTester(App.searches.find_event.operation.perform, { authData, inputData });
const payloadOf = async ({ id }) => (await request('GET', `/events/${id}`)).payload;

test('connection is labelled with its tenant', async () => {
  const me = await authenticate();
  assert.deepEqual(me, await request('GET', '/me'));
  assert.equal(await appTester(App.authentication.connectionLabel, { authData, inputData: me }), me.tenant_name);
});

test('invalid key raises ExpiredAuthError', async () => {
  await assert.rejects(authenticate({ api_key: 'ibx_no' }), { name: 'ExpiredAuthError' });
});

test('rate limit raises ThrottledError with Retry-After', async () => {
  const calls = Array.from({ length: 8 }, () => authenticate({ api_key: rateLimitedKey }));
  const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected');
  assert.ok(refused.length > 0);
  for (const { reason } of refused) {
    assert.equal(reason.name, 'ThrottledError');
    assert.equal(JSON.parse(reason.message).delay, 1);
  }
});

test('wrong address is distinguished from a wrong key', async (t) => {
  for (const url of ['inbox.example.com', 'http://inbox.example.com', 'http://127.0.0.1.example.com', undefined]) {
    await assert.rejects(authenticate({ url }), /must start with https/);
  }
  for (const path of ['/inbox', '/docs']) {
    await assert.rejects(authenticate({ url: authData.url + path }), /No Polling Inbox found at this address/);
  }
  const page = await startServer('<html>Welcome</html>');
  t.after(page.close);
  await assert.rejects(authenticate({ url: page.url }), /is not a Polling Inbox/);
  const other = await startServer('{}');
  t.after(other.close);
  await assert.rejects(authenticate({ url: other.url }), /No Polling Inbox found at this address/);
});

test('long Retry-After is not shortened by retries', async (t) => {
  const busy = await startServer('{"detail": "busy"}', 503, { 'Retry-After': '60' });
  t.after(busy.close);
  await assert.rejects(authenticate({ url: busy.url }), (error) => {
    assert.equal(error.name, 'ThrottledError');
    assert.equal(JSON.parse(error.message).delay, 60);
    return true;
  });
  assert.equal(busy.requests, 1);
});

test('redirect is reported and not followed', async (t) => {
  const old = await startServer('', 301, { Location: `${authData.url}/events` });
  t.after(old.close);
  await assert.rejects(sendEvent({ data: { n: '1' } }, { ...authData, url: old.url }), /has moved to/);
});

test('error of another server is reported by its status only', async (t) => {
  for (const body of ['', '[]', '{"errors": {"a": 1}}', '{"detail": 1, "errors": [null]}']) {
    const proxy = await startServer(body, 403);
    t.after(proxy.close);
    await assert.rejects(authenticate({ url: proxy.url }), /The request failed with status 403/);
  }
});

test('malformed key is rejected and never shown', async () => {
  for (const api_key of ['', undefined, 'ibx_secret\nkey', 'ibx_secret\u200bkey']) {
    await assert.rejects(authenticate({ api_key }), (error) => {
      assert.equal(error.name, 'ExpiredAuthError');
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
  assert.deepEqual(await authenticate({ api_key: ` ${authData.api_key}\n` }), await authenticate());
});

test('event is sent from Data, JSON, or both', async () => {
  const stored = await sendEvent({ event_type: 'order.created', data: { a: '1' }, json: '{"a": 0, "b": {"c": [1.5]}}' });
  assert.equal(stored.event_type, 'order.created');
  assert.deepEqual(await payloadOf(stored), { a: '1', b: { c: [1.5] } });
  assert.deepEqual(await payloadOf(await sendEvent({ data: { text: 'Zürich {{bundle.authData.api_key}} 🙂' } })), {
    text: 'Zürich {{bundle.authData.api_key}} 🙂',
  });
  assert.deepEqual(await payloadOf(await sendEvent({})), {});
});

test('invalid Data is ignored or rejected', async () => {
  assert.deepEqual(await payloadOf(await sendEvent({ data: null, json: '{"a": 1}' })), { a: 1 });
  for (const data of ['abc', ['a']]) await assert.rejects(sendEvent({ data }), /Data must contain names and values/);
});

test('JSON that is not an object is rejected', async () => {
  for (const json of ['{"a": ', '[1]', 'null', '"text"']) await assert.rejects(sendEvent({ json }), /JSON (is not valid|must be an object)/);
});

test('JSON is sent unchanged, down to the digits of its numbers', async () => {
  const { id } = await sendEvent({ json: ' {"n": 12345678901234567890, "e": 1e999, "d": 1.10} ' });
  const response = await fetch(`${authData.url}/events/${id}`, { headers: { 'X-API-Key': authData.api_key } });
  assert.match(await response.text(), /"payload":\{"n":12345678901234567890,"e":1e999,"d":1\.10\}/);
  await assert.rejects(sendEvent({ json: '{"a": 1, "a": 2}' }), /"status":400/);
});

test('surrounding whitespace is ignored', async () => {
  const event_type = `blank.${Date.now()}`;
  const entered = { event_type: ` ${event_type}\n`, data: { n: 1 }, json: ' ', idempotency_key: ' ' };
  const [one, two] = [await sendEvent(entered), await sendEvent(entered)];
  assert.notEqual(one.id, two.id);
  assert.equal((await findEvent({ event_type: ` ${event_type} `, inbox: ' ', event_id: ' ' })).length, 2);
});

test('idempotency key stores an event once', async () => {
  const sendOnce = (order) => sendEvent({ json: JSON.stringify({ order }), idempotency_key: 'order 1001 – Zürich' });
  assert.deepEqual(await sendOnce(1001), await sendOnce(1001));
  await assert.rejects(sendOnce(1002), /idempotency key/);
});

test('errors of the service reach the user', async () => {
  await assert.rejects(sendEvent({ event_type: 'not allowed' }), /"`event_type` must be 1 to 128 characters of [^`]*"/);
  await assert.rejects(new SimulatedZap(authData, { name: 'missing' }).poll(), /"status":404/);
});

test('event is found by its ID and by the ID of a trigger record', async () => {
  const zap = new SimulatedZap(authData, await createInbox());
  const [id] = await zap.inbox.send(1);
  const [triggered] = await zap.poll();
  for (const event_id of [id, triggered.id, ` ${id} `]) {
    const [found] = await findEvent({ event_id, inbox: zap.inputData.inbox });
    assert.deepEqual(found, triggered);
  }
});

test('search without a match returns nothing', async () => {
  for (const event_id of ['9c1f0e0a-4a9b-4b56-b6b5-000000000000', 'no such id', '../inbox', '..', 7]) {
    assert.deepEqual(await findEvent({ event_id }), []);
  }
  assert.deepEqual(await findEvent({ event_type: 'never.sent' }), []);
});

test('events are found by type and status, newest first', async () => {
  const type = `found.${Date.now()}`;
  const sent = await send(2, type);
  const found = await findEvent({ event_type: type, status: 'undelivered' });
  assert.deepEqual(found.map(({ event_id }) => event_id), sent.reverse());
  assert.deepEqual(await findEvent({ event_type: type, status: 'dead' }), []);
});
