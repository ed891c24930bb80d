// Public keys of OpenSSH. Pure.

import { createHash } from 'node:crypto'

/** Number of texts and numbers, each after its length, that follow the name of the algorithm in a public key (RFC 4253, 4.2, and 6.6). */
const algorithms: Readonly<Record<string, number>> = {
  // RFC 8709
  'ssh-ed25519': 1,
  'ssh-rsa': 2,
  // RFC 5656
  'ecdsa-sha2-nistp256': 2,
  'ecdsa-sha2-nistp384': 2,
  'ecdsa-sha2-nistp521': 2,
  // PROTOCOL.u2f of OpenSSH
  'sk-ssh-ed25519@openssh.com': 2,
  'sk-ecdsa-sha2-nistp256@openssh.com': 3,
}

// A key of RSA with 16384 bits has some 2,800 characters.
const longestKey = 8_192
// Minimum of sshd, RequiredRSASize of sshd_config(5).
const leastRsaBits = 1024

/**
 * Judges a public key of OpenSSH: algorithm, data in base64, and a comment that may be absent. Options before the algorithm are refused,
 * as `command=` or `from=`: they decide what a login may do.
 * @returns why it is not a key; it completes a sentence that begins with the field. undefined for a key
 */
export function problemOfKey(text: string): string | undefined {
  const line = text.trim()
  if (line.length > longestKey) return `is longer than ${longestKey} characters`
  if (/[\r\n]/.test(line)) return 'has several lines: give each key as an entry of its own'
  if (/\p{Cc}/u.test(line)) return 'contains a control character'
  const [algorithm = '', data = ''] = line.split(/ +/)
  const fields = Object.hasOwn(algorithms, algorithm) ? algorithms[algorithm] : undefined
  if (fields === undefined) {
    const words = line.split(/[ ,]+/)
    if (words.some((word) => Object.hasOwn(algorithms, word)))
      return `has options before the key, which are not possible here: begin with ${words.find((word) => Object.hasOwn(algorithms, word)) ?? ''}`
    return `is no public key of OpenSSH: it begins with one of ${Object.keys(algorithms).join(', ')}, as a file *.pub does`
  }
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(data)) return 'has no data in base64 after the algorithm'
  const bytes = Buffer.from(data, 'base64')
  const parts = bytes.toString('base64') === data ? partsOf(bytes) : undefined
  if (parts?.length !== fields + 1 || parts[0]?.toString('latin1') !== algorithm)
    return 'is damaged: its data is no key of this algorithm; copy it again, whole'
  if (algorithm === 'ssh-rsa' && bitsOf(parts[2]) < leastRsaBits)
    return `is an RSA key of less than ${leastRsaBits} bits, which sshd refuses: make another one`
  if (algorithm.includes('ed25519') && parts[1]?.length !== 32)
    return 'is damaged: its data is no key of this algorithm; copy it again, whole'
  return undefined
}

/** @returns undefined where the lengths do not fit */
function partsOf(bytes: Buffer): readonly Buffer[] | undefined {
  const parts: Buffer[] = []
  let at = 0
  while (at < bytes.length) {
    if (at + 4 > bytes.length) return undefined
    const end = at + 4 + bytes.readUInt32BE(at)
    if (end > bytes.length || end === at + 4) return undefined
    parts.push(bytes.subarray(at + 4, end))
    at = end
  }
  return parts
}

/** Of a number that begins with zeros so that it is positive. */
function bitsOf(number: Buffer = Buffer.alloc(0)): number {
  const first = number.findIndex((byte) => byte !== 0)
  return first === -1 ? 0 : (number.length - first) * 8 - Math.clz32(number[first] ?? 0) + 24
}

/** The fingerprint of a key, as `ssh-keygen -l` shows it: `SHA256:…`. */
export const fingerprintOf = (key: string): string =>
  `SHA256:${createHash('sha256')
    .update(Buffer.from(key.trim().split(/ +/)[1] ?? '', 'base64'))
    .digest('base64')
    .replace(/=+$/, '')}`
