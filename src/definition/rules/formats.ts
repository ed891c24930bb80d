import { isIPv4 } from 'node:net'
import { isIPv6 } from '../../base/address.ts'

/** The type of a value in YAML. */
export type ValueKind = 'text' | 'number' | 'boolean'

interface Format {
  readonly kind: ValueKind
  /** The end of a sentence that begins with `must be`. */
  readonly expected: string
  readonly accepts: (value: string) => boolean
}

// A number in both YAML 1.2 (core schema) and 1.1: no hexadecimal, no `_`, and no leading zeros, which 1.1 reads as octal.
// Nor a point without a digit after it, which only some readers accept. docs/definition-format.md has the rule in words.
const decimal = /^[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?$/

// The regex of semver.org for version 2.0.0. It does not backtrack, since no repetition can match the character after it.
const semver =
  /^(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?$/

const isNumber = (value: string) => decimal.test(value) && Number.isFinite(Number(value))

/** RFC 4648, section 4, with padding; unused bits are not checked. Line breaks are allowed, as in Go's decoder. */
function isBase64(value: string): boolean {
  const text = value.replace(/[\r\n]/g, '')
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)
}

/** Host bits may be set: `10.0.0.7/24` is an address in its network. */
function isIPv4Cidr(value: string): boolean {
  const [, address = '', length = ''] = /^([0-9.]{7,15})\/([0-9]{1,2})$/.exec(value) ?? []
  return isIPv4(address) && /^(?:3[0-2]|[12]?[0-9])$/.test(length)
}

const anything: Format = { kind: 'text', expected: 'text', accepts: () => true }

const formats = new Map<string, Format>([
  ['string', anything],
  ['number', { kind: 'number', expected: 'a number such as 8080 or -0.5', accepts: isNumber }],
  [
    'boolean',
    { kind: 'boolean', expected: 'true or false', accepts: (value) => value === 'true' || value === 'false' },
  ],
  [
    'version',
    { kind: 'text', expected: 'a semantic version such as 1.2.3', accepts: (value) => semver.test(value) },
  ],
  ['ipv4', { kind: 'text', expected: 'an IPv4 address such as 192.0.2.1', accepts: isIPv4 }],
  ['ipv4cidr', { kind: 'text', expected: 'an IPv4 network such as 192.0.2.0/24', accepts: isIPv4Cidr }],
  ['ipv6', { kind: 'text', expected: 'an IPv6 address such as 2001:db8::1', accepts: isIPv6 }],
  ['base64', { kind: 'text', expected: 'base64 with its padding', accepts: isBase64 }],
])

/** The names of formats as messages show them. They are compared without case, since the platform documents no spelling. */
export const formatNames: readonly string[] = [...formats.keys()]

/** The format of a name, `string` if the name is empty; undefined if it is unknown. */
export function findFormat(token: string | undefined): Format | undefined {
  return token === undefined || token === '' ? anything : formats.get(token.toLowerCase())
}
