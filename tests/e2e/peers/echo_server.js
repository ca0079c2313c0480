// SPDX-License-Identifier: Apache-2.0
// An upstream on Node's HTTP parser. Each whole request is answered with JSON of what was seen of
// it, and the same JSON is a line on stdout, so that a request nobody asked for shows as well.
// First line: {"port": N, "methods": [all that the parser knows]}. Ends when stdin does.
'use strict';

const http = require('node:http');

const options = {
  insecureHTTPParser: false,
  requireHostHeader: true,
  maxHeaderSize: 256 * 1024,
  keepAliveTimeout: 0,
  noDelay: true,
};

function seenOf(request, body) {
  return JSON.stringify({
    method: request.method,
    url: request.url,
    version: request.httpVersion,
    rawHeaders: request.rawHeaders,
    body: body.toString('base64'),
    rawTrailers: request.rawTrailers,
  });
}

const server = http.createServer(options, (request, response) => {
  const parts = [];
  request.on('error', () => {});
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    if (!request.complete) return;
    const text = seenOf(request, Buffer.concat(parts));
    process.stdout.write(text + '\n');
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
    });
    response.end(request.method === 'HEAD' ? undefined : text);
  });
});

server.maxHeadersCount = 0;
server.on('clientError', (error, socket) => {
  if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n');
  else socket.destroy();
});
server.listen(0, '127.0.0.1', () => {
  const hello = { port: server.address().port, methods: http.METHODS };
  process.stdout.write(JSON.stringify(hello) + '\n');
});

process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
