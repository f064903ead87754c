'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { startBadLine } = require('./fake_servers');
const { ask, authData, newInbox, send } = require('./service_client');
const { Zap } = require('./simulated_zap');

const POLLS = 10;
const TYPE = 'life.lived';

/** A key that may poll, and its id. */
const newKey = () => ask('POST', '/keys', { scopes: ['inbox:read'] });

test('two Zaps live through it all: each event after turn-on runs once in each, none before', async (t) => {
  const line = await startBadLine(authData.url);
  t.after(line.close);
  const [one, two] = [await newKey(), await newKey()];
  const zaps = [
    new Zap({ url: line.url, api_key: one.key }, await newInbox(['life.*'])),
    new Zap({ url: authData.url, api_key: two.key }, await newInbox(['*.lived', 'life.*'])),
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
    if (poll === 3) line.lose(1);
    if (poll === 5) line.lose(2);
    if (poll === 6) await sendMore(150);
    if (poll === 7) await first.editorTest();
    await Promise.all([sendMore(1), first.poll(), sendMore(2), second.poll(), sendMore(1)]);
  }
  assert.equal(line.lost, 3);

  await ask('DELETE', `/keys/${one.key_id}`);
  await sendMore(3);
  await assert.rejects(first.poll(), { name: 'ExpiredAuthError' });
  first.authData = { ...authData, api_key: (await newKey()).key };
  for (const zap of zaps) while ((await zap.poll()).length > 0);

  for (const zap of zaps) assert.deepEqual([...zap.runs].sort(), [...sent].sort());

  const [replayed] = sent;
  await ask('POST', `/events/${replayed}/replay?inbox=${first.inbox.name}`);
  for (const zap of zaps) await zap.poll();
  assert.deepEqual(first.runs.slice(sent.length), [replayed]);
  assert.deepEqual(second.runs.slice(sent.length), []);
});
