'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { startPage } = require('./fake_servers');
const { ask, authData, newInbox, send, slowKey } = require('./service_client');
const { App, Zap, appTester } = require('./simulated_zap');

const authenticate = (given) => appTester(App.authentication.test, { authData: { ...authData, ...given } });
const sendEvent = (inputData, given = authData) =>
  appTester(App.creates.send_event.operation.perform, { authData: given, inputData });
const findEvent = (inputData) => appTester(App.searches.find_event.operation.perform, { authData, inputData });
const payloadOf = async ({ id }) => (await ask('GET', `/events/${id}`)).payload;

test('a connection is named after its tenant', async () => {
  const me = await authenticate();
  assert.deepEqual(me, await ask('GET', '/me'));
  assert.equal(await appTester(App.authentication.connectionLabel, { authData, inputData: me }), me.tenant_name);
});

test('a key that is not valid has expired, as Zapier sees it', async () => {
  await assert.rejects(authenticate({ api_key: 'ibx_no' }), { name: 'ExpiredAuthError' });
});

test('a tenant that calls too often is throttled for as long as the service says', async () => {
  const calls = Array.from({ length: 8 }, () => authenticate({ api_key: slowKey }));
  const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected');
  assert.ok(refused.length > 0);
  for (const { reason } of refused) {
    assert.equal(reason.name, 'ThrottledError');
    assert.equal(JSON.parse(reason.message).delay, 1);
  }
});

test('an address that is none, or of something else, is told apart from a wrong key', async (t) => {
  for (const url of ['inbox.example.com', 'http://inbox.example.com', 'http://127.0.0.1.example.com', undefined]) {
    await assert.rejects(authenticate({ url }), /has to begin with https/);
  }
  for (const path of ['/inbox', '/docs']) {
    await assert.rejects(authenticate({ url: authData.url + path }), /There is no Polling Inbox at this address/);
  }
  const page = await startPage('<html>Welcome</html>');
  t.after(page.close);
  await assert.rejects(authenticate({ url: page.url }), /is not a Polling Inbox/);
  const other = await startPage('{}');
  t.after(other.close);
  await assert.rejects(authenticate({ url: other.url }), /There is no Polling Inbox at this address/);
});

test('a service that asks for a long rest is left in peace for as long', async (t) => {
  const busy = await startPage('{"detail": "busy"}', 503, { 'Retry-After': '60' });
  t.after(busy.close);
  await assert.rejects(authenticate({ url: busy.url }), (error) => {
    assert.equal(error.name, 'ThrottledError');
    assert.equal(JSON.parse(error.message).delay, 60);
    return true;
  });
  assert.equal(busy.calls, 1);
});

test('an address that leads elsewhere is told, and nothing is sent there', async (t) => {
  const old = await startPage('', 301, { Location: `${authData.url}/events` });
  t.after(old.close);
  await assert.rejects(sendEvent({ data: { n: '1' } }, { ...authData, url: old.url }), /is not at this address, but at/);
});

test('a refusal by something else is told without its words', async (t) => {
  for (const body of ['', '[]', '{"errors": {"a": 1}}', '{"detail": 1, "errors": [null]}']) {
    const proxy = await startPage(body, 403);
    t.after(proxy.close);
    await assert.rejects(authenticate({ url: proxy.url }), /The call was refused with 403/);
  }
});

test('a key that cannot be one is refused, and never shown', async () => {
  for (const api_key of ['', undefined, 'ibx_secret\nkey', 'ibx_secret\u200bkey']) {
    await assert.rejects(authenticate({ api_key }), (error) => {
      assert.equal(error.name, 'ExpiredAuthError');
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
  assert.deepEqual(await authenticate({ api_key: ` ${authData.api_key}\n` }), await authenticate());
});

test('an event is sent with its members, its JSON, or both', async () => {
  const stored = await sendEvent({ event_type: 'order.created', data: { a: '1' }, json: '{"a": 0, "b": {"c": [1.5]}}' });
  assert.equal(stored.event_type, 'order.created');
  assert.deepEqual(await payloadOf(stored), { a: '1', b: { c: [1.5] } });
  assert.deepEqual(await payloadOf(await sendEvent({ data: { text: 'Zürich {{bundle.authData.api_key}} 🙂' } })), {
    text: 'Zürich {{bundle.authData.api_key}} 🙂',
  });
  assert.deepEqual(await payloadOf(await sendEvent({})), {});
});

test('odd data is no data, or refused', async () => {
  assert.deepEqual(await payloadOf(await sendEvent({ data: null, json: '{"a": 1}' })), { a: 1 });
  for (const data of ['abc', ['a']]) await assert.rejects(sendEvent({ data }), /The field Data takes names and values/);
});

test('what is no JSON object is not sent', async () => {
  for (const json of ['{"a": ', '[1]', 'null', '"text"']) await assert.rejects(sendEvent({ json }), /The field JSON/);
});

test('JSON is sent as it was entered, number for number', async () => {
  const { id } = await sendEvent({ json: ' {"n": 12345678901234567890, "e": 1e999, "d": 1.10} ' });
  const response = await fetch(`${authData.url}/events/${id}`, { headers: { 'X-API-Key': authData.api_key } });
  assert.match(await response.text(), /"payload":\{"n":12345678901234567890,"e":1e999,"d":1\.10\}/);
  await assert.rejects(sendEvent({ json: '{"a": 1, "a": 2}' }), /"status":400/);
});

test('blanks around what was entered do not count', async () => {
  const event_type = `blank.${Date.now()}`;
  const entered = { event_type: ` ${event_type}\n`, data: { n: 1 }, json: ' ', idempotency_key: ' ' };
  const [one, two] = [await sendEvent(entered), await sendEvent(entered)];
  assert.notEqual(one.id, two.id);
  assert.equal((await findEvent({ event_type: ` ${event_type} `, inbox: ' ', event_id: ' ' })).length, 2);
});

test('an event with an idempotency key is stored once', async () => {
  const sendOnce = (order) => sendEvent({ json: JSON.stringify({ order }), idempotency_key: 'order 1001 – Zürich' });
  assert.deepEqual(await sendOnce(1001), await sendOnce(1001));
  await assert.rejects(sendOnce(1002), /idempotency key/);
});

test('a refusal reaches the user in the words of the service', async () => {
  await assert.rejects(sendEvent({ event_type: 'not allowed' }), /event_type: `event_type` must be 1 to 128 characters of/);
  await assert.rejects(new Zap(authData, { name: 'missing' }).poll(), /"status":404/);
});

test('an event is found by its id, and by the id that a trigger gave', async () => {
  const zap = new Zap(authData, await newInbox());
  const [id] = await zap.inbox.send(1);
  const [triggered] = await zap.poll();
  for (const event_id of [id, triggered.id, ` ${id} `]) {
    const [found] = await findEvent({ event_id, inbox: zap.inputData.inbox });
    assert.deepEqual(found, triggered);
  }
});

test('what is not there is not found, and no error', async () => {
  for (const event_id of ['9c1f0e0a-4a9b-4b56-b6b5-000000000000', 'no such id', '../inbox', '..', 7]) {
    assert.deepEqual(await findEvent({ event_id }), []);
  }
  assert.deepEqual(await findEvent({ event_type: 'never.sent' }), []);
});

test('events are found by type and status, the newest first', async () => {
  const type = `found.${Date.now()}`;
  const sent = await send(2, type);
  const found = await findEvent({ event_type: type, status: 'undelivered' });
  assert.deepEqual(found.map(({ event_id }) => event_id), sent.reverse());
  assert.deepEqual(await findEvent({ event_type: type, status: 'dead' }), []);
});
