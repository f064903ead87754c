'use strict';

// How the service is called, and what its refusals are to Zapier.

const { entered } = require('./events');

// Zapier ends what takes longer than 30 seconds, all calls of a step together.
const MOST_MS = 25_000;
// A poll may take the service 10 seconds.
const TRY_MS = 12_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 4_000;
const NO_ANSWER = ['FetchError', 'AbortError'];

/** When all calls of a step that begins now have to be done. */
const deadlineFromNow = () => Date.now() + MOST_MS;

/** For beforeRequest: every request goes to the service that the connection is for, with its key. */
const authorize = (request, z, bundle) => {
  const [address, key] = [bundle.authData.url, bundle.authData.api_key].map(entered);
  // Without TLS the key could be read on its way; only on one's own machine there is no way.
  if (!/^(https:\/\/[^/]|http:\/\/(127\.0\.0\.1|localhost)([:/]|$))/i.test(address)) {
    throw new z.errors.Error('The address of the service has to begin with https://', 'invalid-address', 400);
  }
  // Here and without quoting it: what refuses a header that is none would show the key.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new z.errors.ExpiredAuthError('The API key is missing or has odd characters. Please copy it once more.');
  }
  return {
    ...request,
    url: address.replace(/\/+$/, '') + request.url,
    headers: { ...request.headers, Authorization: `Bearer ${key}` },
  };
};

/** For afterResponse: refusals, in the service's own words. */
const refuse = (response, z) => {
  const { status, data } = response;
  if (status === 401) {
    throw new z.errors.ExpiredAuthError('The API key is not valid. Please connect with another one.');
  }
  if (status >= 300 && status < 400) {
    // Followed, a redirect would make a GET of what is sent, and leave out the key.
    const elsewhere = response.getHeader('Location');
    throw new z.errors.Error(`The service is not at this address, but at ${elsewhere}`, 'invalid-address', status);
  }
  if (status < 300 && (data === null || typeof data !== 'object')) {
    throw new z.errors.Error('What answers at this address is not a Polling Inbox.', 'invalid-address', status);
  }
  if (status >= 400 && status < 500 && status !== 429 && !(status === 404 && response.request.mayBeMissing)) {
    throw new z.errors.Error(wordsOf(response), 'refused', status);
  }
  return response;
};

/** The problem document's, where it is one. */
const wordsOf = ({ status, data }) => {
  if (typeof data?.detail !== 'string') return `The call was refused with ${status}.`;
  const faults = Array.isArray(data.errors) ? data.errors : [];
  return [data.detail, ...faults.map((fault) => `${fault?.pointer}: ${fault?.detail}`)].join(' ');
};

/**
 * A call that may be repeated, because it only reads or carries an id by which the service knows it again.
 *
 * One that `acts` is: where the service may have done it and the answer did not arrive, it is asked for again until the
 * deadline, whatever the service says of its own needs. One that is `patient` waits where calls are limited in number.
 */
const call = async (z, request, { acts = false, patient = false, deadline = deadlineFromNow() } = {}) => {
  let mayBeDone = false;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    let failure;
    let waitMs = pauseMs;
    try {
      const response = await z.request({
        ...request,
        signal: AbortSignal.timeout(Math.max(1, Math.min(TRY_MS, deadline - Date.now()))),
        redirect: 'manual',
        skipThrowForStatus: true,
        throwForThrottlingEarly: false,
      });
      const { status } = response;
      if (status < 429) return response;
      const seconds = Number.parseInt(response.getHeader('Retry-After'), 10) || 1;
      failure = new z.errors.ThrottledError(`The service answered ${status}.`, seconds);
      // Refused for their number, calls have done nothing, and Zapier makes them again later.
      if (status === 429 && !mayBeDone && !patient) throw failure;
      waitMs = Math.max(waitMs, seconds * 1000);
      // Zapier would make it again as another one.
      if (acts) failure = noAnswer(z, status);
    } catch (error) {
      if (!NO_ANSWER.includes(error.name)) throw error;
      failure = noAnswer(z, error.code ?? error.type);
    }
    mayBeDone = acts;
    if (acts) waitMs = Math.min(waitMs, LONGEST_PAUSE_MS);
    if (Date.now() + waitMs >= deadline) throw failure;
    await new Promise((resume) => setTimeout(resume, waitMs));
  }
};

const noAnswer = (z, cause) => new z.errors.Error(`The service could not be reached (${cause}).`, 'no-answer', 503);

module.exports = { authorize, refuse, call, deadlineFromNow };
