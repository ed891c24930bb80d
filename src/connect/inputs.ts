import { printable } from '../base/printable.ts'
import { Failure } from '../ctl/exit-codes.ts'
import { readBody } from '../ctl/request-body.ts'
import { certificatesIn, pemBlocks } from '../outgoing/authorities.ts'

// As the platform accepts it.
const longestToken = 256

/**
 * The registration token in a file.
 * @param file - is standard input
 * @throws Failure usage
 */
export function readToken(file: string): string {
  const token = readBody(file, '--token-file').toString().trim()
  const problem =
    token === ''
      ? 'is empty; write the token that edgeplatformctl token create has printed into it'
      : problemOfToken(token)
  if (problem !== undefined) throw new Failure('usage', `--token-file: ${printable(file)} ${problem}`)
  return token
}

/** What is wrong with a registration token; continues a sentence that its place begins. */
export function problemOfToken(token: string): string | undefined {
  if (token.length > longestToken)
    return `has more than ${longestToken} characters, as no registration token has`
  if (!/^[\x21-\x7e]+$/.test(token)) return 'has more than one word, or no text; only the token may be in it'
  return undefined
}

/**
 * The certificates in a file as PEM, without anything else that is in it, such as a key.
 * @throws Failure usage
 */
export function readAuthorities(file: string): string {
  const text = readBody(file, '--ca-file').toString('latin1')
  try {
    certificatesIn(text)
  } catch (error) {
    throw new Failure('usage', `--ca-file: ${printable(file)} cannot be used: ${(error as Error).message}`)
  }
  return pemBlocks(text)
    .map((pem) => `${pem.replaceAll('\r', '')}\n`)
    .join('')
}

/**
 * A SHA-256 fingerprint as `AA:BB:…`.
 * @param text with or without colons, in either case
 * @throws Failure usage
 */
export function parseFingerprint(text: string): string {
  const bare = text
    .trim()
    .replace(/^sha-?256[:=]/i, '')
    .replaceAll(':', '')
    .toUpperCase()
  if (!/^[0-9A-F]{64}$/.test(bare))
    throw new Failure('usage', '--fingerprint is not the 64 digits of a SHA-256 fingerprint, as AA:BB:...')
  return bare.replace(/..(?!$)/g, '$&:')
}

/**
 * The URL of a platform, as `https://name` or `https://name:port`.
 * @param text also without the scheme
 * @throws Failure usage
 */
export const parsePlatformUrl = (text: string): string =>
  parseUrl(
    /^[a-z]+:\/\//i.test(text) ? text : `https://${text}`,
    'https:',
    'URL',
    'https://platform.plant.example',
  )

/**
 * The URL of a proxy, as `http://name:port`.
 * @throws Failure usage
 */
export const parseProxy = (text: string): string =>
  parseUrl(
    /^[a-z]+:\/\//i.test(text) ? text : `http://${text}`,
    'http:',
    '--proxy',
    'http://proxy.plant.example:3128',
  )

function parseUrl(text: string, protocol: string, name: string, example: string): string {
  const url = URL.parse(text)
  const isBare =
    url !== null && url.pathname === '/' && url.search + url.hash + url.username + url.password === ''
  if (url?.protocol !== protocol || url.hostname === '' || !isBare)
    throw new Failure('usage', `${name}: ${printable(text)} is not accepted; write it as ${example}`)
  return url.origin
}
