'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { startPage } = require('./fake_servers');
const { ask, authData, newInbox } = require('./service_client');
const { App, Zap, appTester, eventIds, reversed } = require('./simulated_zap');

const numbers = (records) => records.map(({ payload }) => payload.n);

test('the editor sees the three newest events, the newest first, and takes none', async () => {
  const zap = new Zap(authData, await newInbox());
  await zap.inbox.send(5);
  assert.deepEqual(numbers(await zap.editorTest()), [5, 4, 3]);
  assert.deepEqual(numbers(await zap.editorTest()), [5, 4, 3]);
  assert.deepEqual(numbers(await zap.poll()), [5, 4, 3, 2, 1]);
});

test('the editor still sees events after the Zap has taken them, under the same ids', async () => {
  const zap = new Zap(authData, await newInbox());
  await zap.inbox.send(2);
  const before = await zap.editorTest();
  await zap.poll();
  const after = await zap.editorTest();
  assert.deepEqual(after.map(({ id }) => id), before.map(({ id }) => id));
});

test('whoever asks for so many events only looks', async () => {
  const zap = new Zap(authData, await newInbox());
  await zap.inbox.send(5);
  const looked = await appTester(App.triggers.new_event.operation.perform, {
    authData,
    inputData: zap.inputData,
    meta: { limit: 2 },
  });
  assert.deepEqual(numbers(looked), [5, 4]);
  assert.deepEqual(numbers(await zap.poll()), [5, 4, 3, 2, 1]);
});

test('an empty inbox shows nothing, so that Zapier takes the sample', async () => {
  const zap = new Zap(authData, await newInbox());
  assert.deepEqual(await zap.editorTest(), []);
});

test('a poll takes at most a hundred events, the oldest ones, and shows the newest of them first', async () => {
  const zap = new Zap(authData, await newInbox());
  const sent = await zap.inbox.send(130);
  assert.deepEqual(eventIds(await zap.poll()), reversed(sent.slice(0, 100)));
  assert.deepEqual(eventIds(await zap.poll()), reversed(sent.slice(100)));
  assert.deepEqual(await zap.poll(), []);
});

test('turning on remembers whatever waits, through all pages, and takes nothing', async () => {
  const zap = new Zap(authData, await newInbox());
  await zap.inbox.send(500);
  await zap.inbox.send(100);
  await zap.turnOn();
  for (let poll = 0; poll < 6; poll += 1) assert.deepEqual(await zap.poll(), []);
  const [late] = await zap.inbox.send(1);
  assert.deepEqual(eventIds(await zap.poll()), [late]);
});

test('a Zap is not turned on where more waits than Zapier can remember', async (t) => {
  const event = { id: 'x', status: 'undelivered', deliveries: 0 };
  const page = JSON.stringify(Array(500).fill(event));
  const endless = await startPage(page, 200, { Link: '</events?cursor=next>; rel="next"' });
  t.after(endless.close);
  const zap = new Zap({ ...authData, url: endless.url }, { name: 'endless' });
  await assert.rejects(zap.turnOn(), /More than 100000 events wait in the inbox endless/);
  assert.equal(endless.calls, 200);
});

test('what another consumer holds while the Zap is turned on does not run when it comes back', async () => {
  const { name, send } = await newInbox();
  const zap = new Zap(authData, { name });
  await send(2);
  const leased = await ask('GET', `/inbox/${name}?mode=lease&limit=1`);
  await zap.turnOn();
  await ask('POST', '/inbox/release', { receipts: leased.map(({ receipt }) => receipt) });
  assert.deepEqual(await zap.poll(), []);
});

test('large events come in as many polls as Zapier can take them in', async () => {
  const zap = new Zap(authData, await newInbox());
  const large = { event_type: `${zap.inbox.name}.large`, payload: { text: '漢'.repeat(80_000) } };
  for (let batch = 0; batch < 3; batch += 1) await ask('POST', '/events/batch', Array(10).fill(large));
  let came = 0;
  for (let poll = 0; poll < 4; poll += 1) {
    const records = await zap.poll();
    assert.ok(Buffer.byteLength(JSON.stringify(records)) < 6_000_000);
    came += records.length;
  }
  assert.equal(came, 30);
});

test('only the given types come, and * stands for any characters', async () => {
  const inbox = await newInbox();
  const zap = new Zap(authData, inbox, [`${inbox.name}.order.*`, '*.refund']);
  for (const kind of ['order.created', 'invoice.order.created', 'refund', 'refunds']) await inbox.send(1, kind);
  const types = (records) => records.map(({ event_type }) => event_type);
  const expected = [`${inbox.name}.refund`, `${inbox.name}.order.created`];
  assert.deepEqual(types(await zap.editorTest()), expected);
  assert.deepEqual(types(await zap.poll()), expected);
});

test('several types in one entry, and blanks, are taken as they were meant', async () => {
  const inbox = await newInbox();
  const zap = new Zap(authData, inbox, [` ${inbox.name}.a, ${inbox.name}.b\n${inbox.name}.c`, ' ', '']);
  for (const kind of ['a', 'b', 'c', 'd']) await inbox.send(1, kind);
  assert.equal((await zap.poll()).length, 3);
});

test('a type is matched piece by piece, and at once', async () => {
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

test('a type that no event can have is refused, before anything is taken', async () => {
  const inbox = await newInbox();
  await inbox.send(1);
  for (const types of [['order|x'], ['(.*'], ['order.created', '^order']]) {
    await assert.rejects(new Zap(authData, inbox, types).poll(), /No event type can match/);
  }
  assert.equal((await new Zap(authData, inbox, [' ']).poll()).length, 1);
});

test('a replayed event comes under another id, and runs once more', async () => {
  const inbox = await newInbox();
  const zap = new Zap(authData, inbox);
  const [id] = await zap.inbox.send(1);
  const [first] = await zap.poll();
  await ask('POST', `/events/${id}/replay?inbox=${inbox.name}`);
  const [second] = await zap.poll();
  assert.equal(second.event_id, first.event_id);
  assert.notEqual(second.id, first.id);
  assert.deepEqual(await zap.poll(), []);
});

test('the list of inboxes begins with the default one and says what each takes', async () => {
  const { name } = await newInbox(['order.*', 'refund']);
  const listed = await appTester(App.triggers.inbox_list.operation.perform, { authData });
  assert.equal(listed[0].id, 'default');
  assert.deepEqual(listed.find(({ id }) => id === name), { id: name, name: `${name} (order.*, refund)` });
});
