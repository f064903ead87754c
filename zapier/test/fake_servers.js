'use strict';

// Servers that take the place of the service.

const http = require('node:http');
const { once } = require('node:events');

// Headers that a proxy must not forward.
const HOP_BY_HOP = ['host', 'connection', 'keep-alive', 'content-length', 'transfer-encoding'];

const start = async (handle) => {
  const server = http.createServer(handle);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => { server.close(); server.closeAllConnections(); };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
};

/** Starts a server that sends the same response to every request, and counts the requests in `requests`. */
const startServer = async (body, status = 200, headers = {}) => {
  const server = await start((request, response) => {
    server.requests += 1;
    response.writeHead(status, headers).end(body);
  });
  server.requests = 0;
  return server;
};

/**
 * Starts a proxy that loses responses of the service after the service has processed the request. `lose(n)` drops the next n
 * responses, `cut(n)` ends them halfway, and `lost` counts both. `fail(...)` then responds with these statuses and
 * Retry-After seconds itself. `loseAfter(n)` drops all responses after the next n.
 */
const startUnreliableProxy = async (target) => {
  let [toLose, toCut, toFail, toPass] = [0, 0, [], Infinity];
  const proxy = await start(async (request, response) => {
    const sent = Buffer.concat(await request.toArray());
    if (toLose + toCut === 0 && toFail.length > 0) {
      const [status, seconds] = toFail.shift();
      response.writeHead(status, { 'Retry-After': seconds }).end();
      return;
    }
    const upstream = await fetch(target + request.url, {
      method: request.method,
      headers: Object.entries(request.headers).filter(([name]) => !HOP_BY_HOP.includes(name)),
      body: sent.length ? sent : undefined,
    });
    const body = Buffer.from(await upstream.arrayBuffer());
    if (toLose + toCut > 0) proxy.lost += 1;
    toPass -= 1;
    if (toLose > 0 || toPass < 0) {
      toLose -= 1;
      request.socket.destroy();
      return;
    }
    // fetch decompressed the body.
    const headers = [...upstream.headers].filter(([name]) => ![...HOP_BY_HOP, 'content-encoding'].includes(name));
    response.writeHead(upstream.status, { ...Object.fromEntries(headers), 'Content-Length': body.length });
    if (toCut > 0) {
      toCut -= 1;
      response.write(body.subarray(0, body.length / 2), () => request.socket.destroy());
      return;
    }
    response.end(body);
  });
  return Object.assign(proxy, {
    lost: 0,
    lose: (count) => { toLose = count; },
    cut: (count) => { toCut = count; },
    fail: (...responses) => { toFail = responses; },
    loseAfter: (count) => { toPass = count; },
  });
};

module.exports = { startServer, startUnreliableProxy };
