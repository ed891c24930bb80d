import { constants } from 'node:crypto'
import type { TlsOptions } from 'node:tls'

/** A private key and its certificate chain, both PEM. */
export interface TlsMaterial {
  readonly key: string
  readonly cert: string
}

// Mozilla's intermediate list 5.7 without DHE: forward secrecy and AEAD only, for EC and RSA keys.
const suites = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
]

/**
 * TLS 1.2 and 1.3 for `tls.createServer` and, at a change of the certificate, for `server.setSecureContext`.
 * Session tickets stay on: their keys live in memory only and end with the context.
 */
export function tlsOptions({ key, cert }: TlsMaterial): TlsOptions {
  return {
    key,
    cert,
    minVersion: 'TLSv1.2',
    maxVersion: 'TLSv1.3',
    ciphers: suites.join(':'),
    // All suites are strong, so the client chooses the one that is fastest on its processor.
    honorCipherOrder: false,
    ecdhCurve: 'X25519:P-256:P-384',
    // Renegotiation (TLS 1.2) costs the server a handshake at the client's will; no client needs it.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ALPNProtocols: ['http/1.1'],
    // Clients show no certificate; without this Node reads its 150 root certificates first, some 30 ms at the start.
    ca: [],
  }
}
