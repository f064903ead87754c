'use strict';

// What may stand where Zapier expects the service.

const http = require('node:http');
const { once } = require('node:events');

// Of one connection, and not of what is sent through it.
const HOP_BY_HOP = ['host', 'connection', 'keep-alive', 'content-length', 'transfer-encoding'];

const start = async (handle) => {
  const server = http.createServer(handle);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = () => { server.close(); server.closeAllConnections(); };
  return { url: `http://127.0.0.1:${server.address().port}`, close };
};

/** One answer for every call; `calls` counts them. */
const startPage = async (body, status = 200, headers = {}) => {
  const page = await start((request, response) => {
    page.calls += 1;
    response.writeHead(status, headers).end(body);
  });
  page.calls = 0;
  return page;
};

/**
 * The service behind a bad line: it does its part and nobody hears of it. `lose(n)` loses the next n answers, `cut(n)`
 * breaks them off in the middle, and `lost` counts both; `refuse(...)` answers the calls after that with these statuses
 * and seconds to wait, without the service; `hangUpAfter(n)` loses every answer after the next n.
 */
const startBadLine = async (target) => {
  let [toLose, toCut, toRefuse, toPass] = [0, 0, [], Infinity];
  const line = await start(async (request, response) => {
    const sent = Buffer.concat(await request.toArray());
    if (toLose + toCut === 0 && toRefuse.length > 0) {
      const [status, seconds] = toRefuse.shift();
      response.writeHead(status, { 'Retry-After': seconds }).end();
      return;
    }
    const answer = await fetch(target + request.url, {
      method: request.method,
      headers: Object.entries(request.headers).filter(([name]) => !HOP_BY_HOP.includes(name)),
      body: sent.length ? sent : undefined,
    });
    const body = Buffer.from(await answer.arrayBuffer());
    if (toLose + toCut > 0) line.lost += 1;
    toPass -= 1;
    if (toLose > 0 || toPass < 0) {
      toLose -= 1;
      request.socket.destroy();
      return;
    }
    // fetch has decompressed the body.
    const headers = [...answer.headers].filter(([name]) => ![...HOP_BY_HOP, 'content-encoding'].includes(name));
    response.writeHead(answer.status, { ...Object.fromEntries(headers), 'Content-Length': body.length });
    if (toCut > 0) {
      toCut -= 1;
      response.write(body.subarray(0, body.length / 2), () => request.socket.destroy());
      return;
    }
    response.end(body);
  });
  return Object.assign(line, {
    lost: 0,
    lose: (count) => { toLose = count; },
    cut: (count) => { toCut = count; },
    refuse: (...answers) => { toRefuse = answers; },
    hangUpAfter: (count) => { toPass = count; },
  });
};

module.exports = { startPage, startBadLine };
