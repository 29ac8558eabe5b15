// An OIDC provider (npm oidc-provider) over HTTPS, and its client, for tests of JWT issuers.
//
//   node issuer.mjs CERTIFICATE KEY
//
// It serves on a free port with a certificate and key in PEM files, prints `ready URL`, and then obeys lines on its standard
// input, answering each with one line:
//
//   token CLIENT LIFE    an access token of the client that lives LIFE seconds, got from the token endpoint
//   rotate               new keys from now on; prints `rotated`
import { readFileSync } from 'node:fs';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import https from 'node:https';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

const [certificate, key] = process.argv.slice(2);
let issuer;
const resource = 'https://api.example';
let life = 600;

function provider() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' };
  return new Provider(issuer, {
    jwks: { keys: [jwk] },
    clients: ['ann', 'bob'].map((name) => ({
      client_id: name,
      client_secret: `secret-of-${name}`,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: 'api',
          audience: 'kubernetes',
          accessTokenFormat: 'jwt',
          accessTokenTTL: life,
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    extraTokenClaims: () => ({ groups: ['crew'] }),
  });
}

let current;
const tls = { cert: readFileSync(certificate), key: readFileSync(key) };
const server = https.createServer(tls, (request, response) => current(request, response));

// The client of the provider: the client credentials grant, over the socket.
function token(client) {
  const body = new URLSearchParams({ grant_type: 'client_credentials', scope: 'api', resource }).toString();
  const options = {
    method: 'POST',
    auth: `${client}:secret-of-${client}`,
    ca: readFileSync(certificate),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  };
  return new Promise((resolve, reject) => {
    const request = https.request(`${issuer}/token`, options, (response) => {
      let text = '';
      response.on('data', (part) => (text += part));
      response.on('end', () => resolve(JSON.parse(text).access_token ?? `error ${text}`));
    });
    request.on('error', reject);
    request.end(body);
  });
}

server.listen(0, '127.0.0.1', async () => {
  issuer = `https://localhost:${server.address().port}`;
  current = provider().callback();
  console.log(`ready ${issuer}`);
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, client, seconds] = line.split(' ');
    if (command === 'token') {
      life = Number(seconds);
      console.log(await token(client));
    } else {
      current = provider().callback();
      console.log('rotated');
    }
  }
  process.exit(0);
});
