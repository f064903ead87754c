'use strict';

// How the service is called, and what its refusals are to Zapier.

// Zapier ends what takes longer than 30 seconds, and a poll may take the service 10.
const MOST_TRIES = 4;
const TRY_MS = 12_000;
const NO_NEW_TRY_AFTER_MS = 13_000;
const PAUSE_MS = 500;

/** For beforeRequest: every request goes to the service that the connection is for, with its key. */
const authorize = (request, z, bundle) => {
  const address = (bundle.authData.url || '').trim().replace(/\/+$/, '');
  if (!/^https?:\/\/[^/]/i.test(address)) {
    throw new z.errors.Error('The address of the service has to begin with https://', 'invalid-address', 400);
  }
  return {
    ...request,
    url: address + request.url,
    headers: { ...request.headers, Authorization: `Bearer ${bundle.authData.api_key}` },
  };
};

/** For afterResponse: refusals, in the service's own words. Zapier has turned a 429 into a ThrottledError before. */
const refuse = (response, z) => {
  const { status, data } = response;
  if (status === 401) {
    throw new z.errors.ExpiredAuthError('The API key is not valid any more. Reconnect with another one.');
  }
  if (status < 400 && (data === null || typeof data !== 'object')) {
    throw new z.errors.Error('What answers at this address is not a Polling Inbox.', 'invalid-address', status);
  }
  if (status >= 400 && status < 500 && !(status === 404 && response.request.mayBeMissing)) {
    const faults = (data?.errors ?? []).map(({ pointer, detail }) => ` ${pointer}: ${detail}`);
    const words = data?.detail ?? `The service refused the call with ${status}.`;
    throw new z.errors.Error(words + faults.join(''), data?.type ?? 'refused', status);
  }
  return response;
};

/**
 * A call that may be repeated, because it only reads or carries an id by which the service knows it again:
 * where the answer was lost on its way, it is asked for once more.
 */
const call = async (z, request) => {
  const began = Date.now();
  for (let tries = 1; ; tries += 1) {
    const isLast = () => tries === MOST_TRIES || Date.now() - began > NO_NEW_TRY_AFTER_MS;
    try {
      const response = await z.request({ timeout: TRY_MS, ...request, skipThrowForStatus: true });
      if (response.status < 500) return response;
      if (isLast()) throw unavailable(z, response);
    } catch (error) {
      if (error.name !== 'FetchError' || isLast()) throw error;
    }
    await new Promise((resume) => setTimeout(resume, PAUSE_MS));
  }
};

/** Zapier tries again later, by itself. */
const unavailable = (z, response) => {
  const seconds = Number.parseInt(response.getHeader('Retry-After'), 10);
  return new z.errors.ThrottledError(`The service answered ${response.status}.`, Number.isNaN(seconds) ? 60 : seconds);
};

module.exports = { authorize, refuse, call };
