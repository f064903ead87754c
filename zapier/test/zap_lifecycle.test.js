'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { startUnreliableProxy } = require('./fake_servers');
const { request, authData, createInbox, send } = require('./service_client');
const { SimulatedZap } = require('./simulated_zap');

const POLLS = 10;
const TYPE = 'cycle.event';

const createKey = () => request('POST', '/keys', { scopes: ['inbox:read'] });

test('each event after turn-on runs once per Zap, despite lost responses and a revoked key', async (t) => {
  const proxy = await startUnreliableProxy(authData.url);
  t.after(proxy.close);
  const [one, two] = [await createKey(), await createKey()];
  const zaps = [
    new SimulatedZap({ url: proxy.url, api_key: one.key }, await createInbox(['cycle.*'])),
    new SimulatedZap({ url: authData.url, api_key: two.key }, await createInbox(['*.event', 'cycle.*'])),
  ];
  const [first, second] = zaps;

  await send(7, TYPE);
  for (const zap of zaps) {
    assert.equal((await zap.editorTest()).length, 3);
    await zap.turnOn();
  }

  const sent = [];
  const sendMore = async (count) => { sent.push(...(await send(count, TYPE))); };
  for (let poll = 1; poll <= POLLS; poll += 1) {
    if (poll === 3) proxy.lose(1);
    if (poll === 5) proxy.lose(2);
    if (poll === 6) await sendMore(150);
    if (poll === 7) await first.editorTest();
    await Promise.all([sendMore(1), first.poll(), sendMore(2), second.poll(), sendMore(1)]);
  }
  assert.equal(proxy.lost, 3);

  await request('DELETE', `/keys/${one.key_id}`);
  await sendMore(3);
  await assert.rejects(first.poll(), { name: 'ExpiredAuthError' });
  first.authData = { ...authData, api_key: (await createKey()).key };
  for (const zap of zaps) while ((await zap.poll()).length > 0);

  for (const zap of zaps) assert.deepEqual([...zap.runs].sort(), [...sent].sort());

  const [replayed] = sent;
  await request('POST', `/events/${replayed}/replay?inbox=${first.inbox.name}`);
  for (const zap of zaps) await zap.poll();
  assert.deepEqual(first.runs.slice(sent.length), [replayed]);
  assert.deepEqual(second.runs.slice(sent.length), []);
});
