'use strict';

const { call } = require('./client');

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
      helpText: 'The web address of your Polling Inbox. It begins with `https://` and has no path.',
    },
    {
      key: 'api_key',
      label: 'API Key',
      type: 'password',
      required: true,
      helpText:
        'Begins with `ibx_`. Ask whoever runs your Polling Inbox for one with the scopes `inbox:read`, which ' +
        'triggers and searches need, and `events:write`, which sending needs.',
    },
  ],
  test: async (z) => {
    const { data } = await call(z, { url: '/me', mayBeMissing: true });
    if (!data?.tenant_id) {
      const words = 'There is no Polling Inbox at this address. It has no path, as in https://inbox.example.com';
      throw new z.errors.Error(words, 'invalid-address', 404);
    }
    return data;
  },
  connectionLabel: (z, bundle) => bundle.inputData.tenant_name || bundle.inputData.tenant_id,
};
