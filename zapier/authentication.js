'use strict';

const { call } = require('./service');

module.exports = {
  type: 'custom',
  fields: [
    {
      key: 'url',
      label: 'Address',
      type: 'string',
      required: true,
      isNoSecret: true,
      placeholder: 'https://inbox.example.com',
      helpText: 'Where your Polling Inbox runs, as Zapier can reach it.',
    },
    {
      key: 'api_key',
      label: 'API Key',
      type: 'password',
      required: true,
      helpText:
        'A key with the scopes `inbox:read` (to trigger and to find) and `events:write` (to send). ' +
        'Whoever runs the service makes it with `inbox keys create TENANT`.',
    },
  ],
  test: async (z) => (await call(z, { url: '/me' })).data,
  connectionLabel: (z, bundle) => bundle.inputData.tenant_name || bundle.inputData.tenant_id,
};
