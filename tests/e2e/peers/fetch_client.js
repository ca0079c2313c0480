// SPDX-License-Identifier: Apache-2.0
// A client on Node's HTTP parser. Each line of stdin, {"port": N, "method": "GET"}, is one request on
// its own connection; a line of stdout tells what was read, or that it failed or was cut.
'use strict';

const http = require('node:http');
const readline = require('node:readline');

function fetch({ port, method }, done) {
  const agent = new http.Agent({ keepAlive: false });
  const request = http.request({
    host: '127.0.0.1', port, method, path: '/', agent, insecureHTTPParser: false, maxHeaderSize: 256 * 1024,
  });
  let told = false;
  const tell = (seen) => {
    if (told) return;
    told = true;
    request.destroy();
    done(seen);
  };
  request.on('error', (error) => tell({ failed: error.code || String(error) }));
  request.on('upgrade', (response) => tell({ failed: 'upgrade' }));
  request.on('response', (response) => {
    const parts = [];
    response.on('data', (part) => parts.push(part));
    response.on('error', () => tell({ failed: 'cut', status: response.statusCode }));
    response.on('aborted', () => tell({ failed: 'cut', status: response.statusCode }));
    response.on('end', () => {
      if (!response.complete) return tell({ failed: 'cut', status: response.statusCode });
      tell({
        status: response.statusCode,
        reason: response.statusMessage,
        rawHeaders: response.rawHeaders,
        body: Buffer.concat(parts).toString('base64'),
        rawTrailers: response.rawTrailers,
      });
    });
  });
  request.end();
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  fetch(JSON.parse(line), (seen) => process.stdout.write(JSON.stringify(seen) + '\n'));
});
