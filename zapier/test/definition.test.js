'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const zapier = require('zapier-platform-core');

const { App } = require('./simulated_zap');

test('the definition passes the validation that Zapier runs on a push', async () => {
  const { results } = await zapier.createAppHandler(App)({ command: 'validate' });
  assert.deepEqual(results, []);
});

test('a definition that is wrong does not pass', async () => {
  const triggers = { ...App.triggers, new_event: { ...App.triggers.new_event, noun: undefined } };
  const { results } = await zapier.createAppHandler({ ...App, triggers })({ command: 'validate' });
  assert.notDeepEqual(results, []);
});

test('what Zapier checks in an output raises here, and is not only logged', async () => {
  const withoutIds = { ...App.triggers.new_event, operation: { perform: () => [{ n: 1 }] } };
  const app = { ...App, triggers: { new_event: withoutIds } };
  const asked = zapier.createAppTester(app)(withoutIds.operation.perform, {});
  await assert.rejects(asked, { name: 'CheckError' });
});

test('each sample has the members that the step itself gives', () => {
  for (const step of [App.triggers.new_event, App.creates.send_event, App.searches.find_event]) {
    const { outputFields, sample } = step.operation;
    for (const { key } of outputFields) assert.ok(key in sample, `${step.key}: ${key}`);
  }
});
