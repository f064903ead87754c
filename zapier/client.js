'use strict';

// HTTP client for the service: authentication, retries, and the errors that Zapier shows.

const { trimmed } = require('./events');

// Zapier stops a step after 30 seconds.
const STEP_TIMEOUT_MS = 25_000;
// The service may take 10 seconds for a poll.
const ATTEMPT_TIMEOUT_MS = 12_000;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 4_000;
const CONNECTION_ERRORS = ['FetchError', 'AbortError'];

/** Returns the deadline for all requests of a step that starts now. */
const deadlineFromNow = () => Date.now() + STEP_TIMEOUT_MS;

/** beforeRequest: adds the base URL and the API key of the connection. */
const authorize = (request, z, bundle) => {
  const [address, key] = [bundle.authData.url, bundle.authData.api_key].map(trimmed);
  // Without TLS the key could be read in transit, except on the same machine.
  if (!/^(https:\/\/[^/]|http:\/\/(127\.0\.0\.1|localhost)([:/]|$))/i.test(address)) {
    throw new z.errors.Error('The address must start with https://', 'invalid-address', 400);
  }
  // Checked here because the error for an invalid header value would contain the key.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new z.errors.ExpiredAuthError('The API key is missing or contains invalid characters. Copy the whole key again.');
  }
  return {
    ...request,
    url: address.replace(/\/+$/, '') + request.url,
    headers: { ...request.headers, Authorization: `Bearer ${key}` },
  };
};

/** afterResponse: throws an error with the text of the service's problem document. */
const throwForError = (response, z) => {
  const { status, data } = response;
  if (status === 401) {
    throw new z.errors.ExpiredAuthError('The API key is invalid. Reconnect with another key.');
  }
  if (status >= 300 && status < 400) {
    // Following a redirect would turn a POST into a GET and drop the key.
    const location = response.getHeader('Location');
    throw new z.errors.Error(`The service has moved to ${location}. Update the address of the connection.`, 'invalid-address', status);
  }
  if (status < 300 && (data === null || typeof data !== 'object')) {
    throw new z.errors.Error('The server at this address is not a Polling Inbox.', 'invalid-address', status);
  }
  if (status >= 400 && status < 500 && status !== 429 && !(status === 404 && response.request.allowNotFound)) {
    throw new z.errors.Error(getErrorMessage(response), 'refused', status);
  }
  return response;
};

/** Returns the text of the problem document, or the status if the response has another body. */
const getErrorMessage = ({ status, data }) => {
  if (typeof data?.detail !== 'string') return `The request failed with status ${status}.`;
  // The detail of a problem with a single error contains that error.
  const errors = (Array.isArray(data.errors) ? data.errors : []).filter((error) => !data.detail.includes(error?.detail));
  return [data.detail, ...errors.map((error) => `${error?.pointer}: ${error?.detail}`)].join(' ');
};

/**
 * Sends a request that is safe to repeat, and returns its response. The request only reads, or has an ID by which the
 * service recognizes a retry.
 *
 * `mustComplete`: the service may have processed a request whose response was lost, so the request is repeated until the
 * deadline, even if Retry-After asks for a longer pause. `waitForRateLimit`: waits instead of failing on a 429.
 */
const call = async (z, request, { mustComplete = false, waitForRateLimit = false, deadline = deadlineFromNow() } = {}) => {
  let mayBeProcessed = false;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    let failure;
    let waitMs = pauseMs;
    try {
      const response = await z.request({
        ...request,
        signal: AbortSignal.timeout(Math.max(1, Math.min(ATTEMPT_TIMEOUT_MS, deadline - Date.now()))),
        redirect: 'manual',
        skipThrowForStatus: true,
        throwForThrottlingEarly: false,
      });
      const { status } = response;
      if (status < 429) return response;
      const retryAfterSeconds = Number.parseInt(response.getHeader('Retry-After'), 10) || 1;
      failure = new z.errors.ThrottledError(`The service responded with status ${status}.`, retryAfterSeconds);
      // A rate-limited request was not processed, so Zapier can repeat the step later.
      if (status === 429 && !mayBeProcessed && !waitForRateLimit) throw failure;
      waitMs = Math.max(waitMs, retryAfterSeconds * 1000);
      // No ThrottledError: Zapier would repeat the step from the start, with another ID.
      if (mustComplete) failure = makeConnectionError(z, status);
    } catch (error) {
      if (!CONNECTION_ERRORS.includes(error.name)) throw error;
      failure = makeConnectionError(z, error.code ?? error.type);
    }
    mayBeProcessed = mustComplete;
    if (mustComplete) waitMs = Math.min(waitMs, MAX_PAUSE_MS);
    if (Date.now() + waitMs >= deadline) throw failure;
    await new Promise((resume) => setTimeout(resume, waitMs));
  }
};

const makeConnectionError = (z, cause) => new z.errors.Error(`Could not reach the service (${cause}).`, 'no-response', 503);

module.exports = { authorize, throwForError, call, deadlineFromNow };
