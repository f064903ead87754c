'use strict';

const assert = require('node:assert/strict');
const { describe, test } = require('node:test');

const { request, authData, createInbox } = require('./service_client');
const { startUnreliableProxy } = require('./fake_servers');
const { App, SimulatedZap, appTester, eventIds, reversed } = require('./simulated_zap');

const sendEvent = (inputData, url) =>
  appTester(App.creates.send_event.operation.perform, { authData: { ...authData, url }, inputData });

const startProxy = async (t) => {
  const proxy = await startUnreliableProxy(authData.url);
  t.after(proxy.close);
  return proxy;
};
const startZapBehindProxy = async (t) => {
  const proxy = await startProxy(t);
  return { proxy, zap: new SimulatedZap({ ...authData, url: `${proxy.url}/` }, await createInbox()) };
};

// Concurrent, since these tests mostly wait.
describe('lost responses', { concurrency: true }, () => {
  test('polled batches run although the service fails before the last one', async (t) => {
    const { proxy, zap } = await startZapBehindProxy(t);
    const sent = await zap.inbox.send(12);
    proxy.loseAfter(1);
    assert.deepEqual(eventIds(await zap.poll()), reversed(sent.slice(0, 3)));
  });

  test('short outage after a lost response loses no event', async (t) => {
    const { proxy, zap } = await startZapBehindProxy(t);
    const sent = await zap.inbox.send(3);
    proxy.lose(1);
    proxy.fail([503, 30], [429, 1], [503, 1]);
    assert.deepEqual(eventIds(await zap.poll()), reversed(sent));
  });

  // node-fetch, which Zapier uses, does not detect a truncated response: the second case waits for its timeout.
  for (const [loss, times] of [['lose', 3], ['cut', 1]]) {
    test(`retry returns the events of a lost response (${loss})`, async (t) => {
      const { proxy, zap } = await startZapBehindProxy(t);
      const sent = await zap.inbox.send(3);
      proxy[loss](times);
      assert.deepEqual(eventIds(await zap.poll()), reversed(sent));
      assert.equal(proxy.lost, times);
      assert.deepEqual(await zap.poll(), []);
    });
  }

  test('turning on waits for the rate limit instead of starting over', async (t) => {
    const { proxy, zap } = await startZapBehindProxy(t);
    await zap.inbox.send(1);
    proxy.fail([429, 1]);
    await zap.turnOn();
    assert.deepEqual(await zap.poll(), []);
  });

  test('event is stored once if the response is lost', async (t) => {
    const proxy = await startProxy(t);
    const event_type = `lost.${Date.now()}`;
    proxy.lose(1);
    const stored = await sendEvent({ event_type, data: { n: '1' } }, proxy.url);
    assert.equal(proxy.lost, 1);
    const events = await request('GET', `/events?event_type=${event_type}`);
    assert.deepEqual(events.map(({ id }) => id), [stored.id]);
  });

  test('step that may have sent its event is not repeated by Zapier', async (t) => {
    const proxy = await startProxy(t);
    proxy.fail(...Array(20).fill([503, 30]));
    await assert.rejects(sendEvent({ data: { n: '1' } }, proxy.url), { name: 'AppError' });
  });
});
