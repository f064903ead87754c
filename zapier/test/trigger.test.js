'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { startServer } = require('./fake_servers');
const { request, authData, createInbox } = require('./service_client');
const { App, SimulatedZap, appTester, eventIds, reversed } = require('./simulated_zap');

const numbers = (records) => records.map(({ payload }) => payload.n);

test('editor shows the three newest events and consumes none', async () => {
  const zap = new SimulatedZap(authData, await createInbox());
  await zap.inbox.send(5);
  assert.deepEqual(numbers(await zap.editorTest()), [5, 4, 3]);
  assert.deepEqual(numbers(await zap.editorTest()), [5, 4, 3]);
  assert.deepEqual(numbers(await zap.poll()), [5, 4, 3, 2, 1]);
});

test('editor shows polled events with the same IDs', async () => {
  const zap = new SimulatedZap(authData, await createInbox());
  await zap.inbox.send(2);
  const before = await zap.editorTest();
  await zap.poll();
  const after = await zap.editorTest();
  assert.deepEqual(after.map(({ id }) => id), before.map(({ id }) => id));
});

test('positive limit shows events and consumes none', async () => {
  const zap = new SimulatedZap(authData, await createInbox());
  await zap.inbox.send(5);
  const shown = await appTester(App.triggers.new_event.operation.perform, {
    authData,
    inputData: zap.inputData,
    meta: { limit: 2 },
  });
  assert.deepEqual(numbers(shown), [5, 4]);
  assert.deepEqual(numbers(await zap.poll()), [5, 4, 3, 2, 1]);
});

test('editor shows nothing for an empty inbox, so that Zapier uses the sample', async () => {
  const zap = new SimulatedZap(authData, await createInbox());
  assert.deepEqual(await zap.editorTest(), []);
});

test('poll returns up to 100 of the oldest events, newest first', async () => {
  const zap = new SimulatedZap(authData, await createInbox());
  const sent = await zap.inbox.send(130);
  assert.deepEqual(eventIds(await zap.poll()), reversed(sent.slice(0, 100)));
  assert.deepEqual(eventIds(await zap.poll()), reversed(sent.slice(100)));
  assert.deepEqual(await zap.poll(), []);
});

test('events that are undelivered when the Zap is turned on do not run it later', async () => {
  const zap = new SimulatedZap(authData, await createInbox());
  await zap.inbox.send(500);
  await zap.inbox.send(100);
  await zap.turnOn();
  for (let poll = 0; poll < 6; poll += 1) assert.deepEqual(await zap.poll(), []);
  const [late] = await zap.inbox.send(1);
  assert.deepEqual(eventIds(await zap.poll()), [late]);
});

test('Zap cannot be turned on if the inbox has more undelivered events than Zapier can remember', async (t) => {
  const event = { id: 'x', status: 'undelivered', deliveries: 0 };
  const page = JSON.stringify(Array(500).fill(event));
  const endless = await startServer(page, 200, { Link: '</events?cursor=next>; rel="next"' });
  t.after(endless.close);
  const zap = new SimulatedZap({ ...authData, url: endless.url }, { name: 'endless' });
  await assert.rejects(zap.turnOn(), /The inbox endless contains more than 100000 undelivered or leased events/);
  assert.equal(endless.requests, 200);
});

test('events that are leased when the Zap is turned on do not run it later', async () => {
  const { name, send } = await createInbox();
  const zap = new SimulatedZap(authData, { name });
  await send(2);
  const leased = await request('GET', `/inbox/${name}?mode=lease&limit=1`);
  await zap.turnOn();
  await request('POST', '/inbox/release', { receipts: leased.map(({ receipt }) => receipt) });
  assert.deepEqual(await zap.poll(), []);
});

test('polls return fewer events if the events are large', async () => {
  const zap = new SimulatedZap(authData, await createInbox());
  const large = { event_type: `${zap.inbox.name}.large`, payload: { text: '漢'.repeat(80_000) } };
  for (let batch = 0; batch < 3; batch += 1) await request('POST', '/events/batch', Array(10).fill(large));
  let received = 0;
  for (let poll = 0; poll < 4; poll += 1) {
    const records = await zap.poll();
    assert.ok(Buffer.byteLength(JSON.stringify(records)) < 6_000_000);
    received += records.length;
  }
  assert.equal(received, 30);
});

test('only events whose type matches a pattern run the Zap, and * matches any characters', async () => {
  const inbox = await createInbox();
  const zap = new SimulatedZap(authData, inbox, [`${inbox.name}.order.*`, '*.refund']);
  for (const kind of ['order.created', 'invoice.order.created', 'refund', 'refunds']) await inbox.send(1, kind);
  const types = (records) => records.map(({ event_type }) => event_type);
  const expected = [`${inbox.name}.refund`, `${inbox.name}.order.created`];
  assert.deepEqual(types(await zap.editorTest()), expected);
  assert.deepEqual(types(await zap.poll()), expected);
});

test('one entry may contain several event types', async () => {
  const inbox = await createInbox();
  const zap = new SimulatedZap(authData, inbox, [` ${inbox.name}.a, ${inbox.name}.b\n${inbox.name}.c`, ' ', '']);
  for (const kind of ['a', 'b', 'c', 'd']) await inbox.send(1, kind);
  assert.equal((await zap.poll()).length, 3);
});

test('pattern matches the whole event type', async () => {
  const { matcher } = require('../events');
  const matches = (pattern, event_type) => matcher([pattern])({ event_type });
  for (const [pattern, type] of [['*', ''], ['*', 'a'], ['a*', 'a'], ['*a', 'ba'], ['a*b*c', 'aXbYc'], ['**a**', 'a']]) {
    assert.ok(matches(pattern, type), pattern);
  }
  for (const [pattern, type] of [['a*a', 'a'], ['a*', 'ba'], ['*a', 'ab'], ['a*b*c', 'acb'], ['a', 'A'], ['.*', 'a']]) {
    assert.ok(!matches(pattern, type), pattern);
  }
  assert.ok(!matches(`${'*a'.repeat(60)}*b`, 'a'.repeat(128)));
  assert.ok(!matches('*', null));
});

test('invalid event type is rejected before polling', async () => {
  const inbox = await createInbox();
  await inbox.send(1);
  for (const types of [['order|x'], ['(.*'], ['order.created', '^order']]) {
    await assert.rejects(new SimulatedZap(authData, inbox, types).poll(), /is not a valid event type/);
  }
  assert.equal((await new SimulatedZap(authData, inbox, [' ']).poll()).length, 1);
});

test('replayed event keeps its event ID, gets a new delivery ID and runs the Zap again', async () => {
  const inbox = await createInbox();
  const zap = new SimulatedZap(authData, inbox);
  const [id] = await zap.inbox.send(1);
  const [first] = await zap.poll();
  await request('POST', `/events/${id}/replay?inbox=${inbox.name}`);
  const [second] = await zap.poll();
  assert.equal(second.event_id, first.event_id);
  assert.notEqual(second.id, first.id);
  assert.deepEqual(await zap.poll(), []);
});

test('inbox list starts with default and shows event types', async () => {
  const { name } = await createInbox(['order.*', 'refund']);
  const listed = await appTester(App.triggers.inbox_list.operation.perform, { authData });
  assert.equal(listed[0].id, 'default');
  assert.deepEqual(listed.find(({ id }) => id === name), { id: name, name: `${name} (order.*, refund)` });
});
