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
      helpText: 'The URL of your Polling Inbox. It starts with `https://` and has no path.',
    },
    {
      key: 'api_key',
      label: 'API Key',
      type: 'password',
      required: true,
      helpText:
        'Starts with `ibx_`. Ask the operator of your Polling Inbox for a key with the scopes `inbox:read` (for ' +
        'triggers and searches) and `events:write` (for sending events).',
    },
  ],
  test: async (z) => {
    const { data } = await call(z, { url: '/me', allowNotFound: true });
    if (!data?.tenant_id) {
      const message = 'No Polling Inbox found at this address. Enter it without a path, as in https://inbox.example.com';
      throw new z.errors.Error(message, 'invalid-address', 404);
    }
    return data;
  },
  connectionLabel: (z, bundle) => bundle.inputData.tenant_name || bundle.inputData.tenant_id,
};
