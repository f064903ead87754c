'use strict';

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');

const { ask, authData, newInbox } = require('./service_client');
const { startBadLine } = require('./fake_servers');
const { App, Zap, appTester, eventIds, reversed } = require('./simulated_zap');

const sendEvent = (inputData, url) =>
  appTester(App.creates.send_event.operation.perform, { authData: { ...authData, url }, inputData });

const badLine = async (t) => {
  const line = await startBadLine(authData.url);
  t.after(line.close);
  return line;
};
const zapOnBadLine = async (t) => {
  const line = await badLine(t);
  return { line, zap: new Zap({ ...authData, url: `${line.url}/` }, await newInbox()) };
};

// At the same time: they wait most of it.
describe('where answers get lost', { concurrency: true }, () => {
  test('what was taken runs, even though the service is gone before all is taken', async (t) => {
    const { line, zap } = await zapOnBadLine(t);
    const sent = await zap.inbox.send(12);
    line.hangUpAfter(1);
    assert.deepEqual(eventIds(await zap.poll()), reversed(sent.slice(0, 3)));
  });

  test('an outage of some seconds costs no event whose answer got lost', async (t) => {
    const { line, zap } = await zapOnBadLine(t);
    const sent = await zap.inbox.send(3);
    line.lose(1);
    line.refuse([503, 30], [429, 1], [503, 1]);
    assert.deepEqual(eventIds(await zap.poll()), reversed(sent));
  });

  // node-fetch, which Zapier calls with, does not notice that an answer broke off: the second case waits for its timeout.
  for (const [loss, times] of [['lose', 3], ['cut', 1]]) {
    test(`events whose answer got lost come with the next try (${loss})`, async (t) => {
      const { line, zap } = await zapOnBadLine(t);
      const sent = await zap.inbox.send(3);
      line[loss](times);
      assert.deepEqual(eventIds(await zap.poll()), reversed(sent));
      assert.equal(line.lost, times);
      assert.deepEqual(await zap.poll(), []);
    });
  }

  test('turning on waits where calls are limited in number, since it would begin anew', async (t) => {
    const { line, zap } = await zapOnBadLine(t);
    await zap.inbox.send(1);
    line.refuse([429, 1]);
    await zap.turnOn();
    assert.deepEqual(await zap.poll(), []);
  });

  test('an event whose answer got lost is stored once all the same', async (t) => {
    const line = await badLine(t);
    const event_type = `lost.${Date.now()}`;
    line.lose(1);
    const stored = await sendEvent({ event_type, data: { n: '1' } }, line.url);
    assert.equal(line.lost, 1);
    const events = await ask('GET', `/events?event_type=${event_type}`);
    assert.deepEqual(events.map(({ id }) => id), [stored.id]);
  });

  test('a step that may have sent its event does not ask Zapier to make it again', async (t) => {
    const line = await badLine(t);
    line.refuse(...Array(20).fill([503, 30]));
    await assert.rejects(sendEvent({ data: { n: '1' } }, line.url), { name: 'AppError' });
  });
});
