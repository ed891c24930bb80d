import { createHmac, generateKeyPairSync, sign as signRsa } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestEdge, currentPath, logoutPath, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
let good: string
let uid: string
beforeAll(async () => {
  edge = await createTestEdge()
  good = (await edge.login('bob')).access
  uid = edge.sessions.authenticate(good)?.sessionUid ?? ''
})
afterAll(() => edge.stop())

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const header = { alg: 'HS256', typ: 'JWT' }
const seconds = () => Math.floor(Date.now() / 1_000)
const claims = (change: Record<string, unknown> = {}) => ({
  sub: 'bob',
  jti: `${uid}.0`,
  iat: seconds(),
  exp: seconds() + 600,
  role: 'viewer',
  ...change,
})
const without = (name: string) => Object.fromEntries(Object.entries(claims()).filter(([key]) => key !== name))
const signed = (head: unknown, body: unknown, key: Buffer | string = edge.keys.access, hash = 'sha256') => {
  const text = `${encode(head)}.${encode(body)}`
  return `${text}.${createHmac(hash, key).update(text).digest('base64url')}`
}
const status = async (token: string) => (await edge.get(currentPath, token)).statusCode

it('the forger of these tests can make a valid token, so that the refusals below prove something', async () => {
  expect(await status(good)).toBe(200)
  expect(await status(signed(header, claims()))).toBe(200)
})

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const publicPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()

describe('a token is refused', () => {
  it.each<[string, () => string]>([
    ['with alg none and no signature', () => `${encode({ alg: 'none' })}.${encode(claims())}.`],
    ['with alg None', () => `${encode({ alg: 'None' })}.${encode(claims())}.`],
    ['with alg NONE, signed all the same', () => signed({ alg: 'NONE' }, claims())],
    ['without an alg', () => signed({ typ: 'JWT' }, claims())],
    [
      'with alg HS384 and the right key',
      () => signed({ alg: 'HS384' }, claims(), edge.keys.access, 'sha384'),
    ],
    [
      'with alg HS512 and the right key',
      () => signed({ alg: 'HS512' }, claims(), edge.keys.access, 'sha512'),
    ],
    [
      'with alg RS256',
      () => {
        const text = `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode(claims())}`
        return `${text}.${signRsa('sha256', Buffer.from(text), rsa.privateKey).toString('base64url')}`
      },
    ],
    ['with a public key as its secret', () => signed(header, claims(), publicPem)],
    ['with a public key as its secret, behind a space', () => signed(header, claims(), ` ${publicPem}`)],
    [
      'with a key of its own in the header',
      () => signed({ ...header, jwk: { kty: 'oct', k: 'AAAA' } }, claims(), Buffer.alloc(3)),
    ],
    ['with a kid that is a path', () => signed({ ...header, kid: '/dev/null' }, claims(), '\0')],
    ['with a kid and an empty key', () => signed({ ...header, kid: '' }, claims(), '\0'.repeat(32))],
    ['with a jku', () => signed({ ...header, jku: 'https://evil.example/keys' }, claims(), 'evil')],
    ['with an empty signature', () => good.replace(/[^.]*$/, '')],
    ['without its signature and the dot', () => good.replace(/\.[^.]*$/, '')],
    ['with a signature that is cut off', () => good.slice(0, -4)],
    ['with something behind its signature', () => `${good}.x`],
    ['with the key of refresh tokens', () => signed(header, claims(), edge.keys.refresh.export())],
    ['with another secret', () => signed(header, claims(), Buffer.alloc(32, 9))],
    ['with a list for claims', () => signed(header, [claims()])],
    ['with text for claims', () => signed(header, 'claims')],
    ['with null for claims', () => signed(header, null)],
    ['without exp', () => signed(header, without('exp'))],
    ['without iat', () => signed(header, without('iat'))],
    ['without sub', () => signed(header, without('sub'))],
    ['without jti', () => signed(header, without('jti'))],
    ['without role', () => signed(header, without('role'))],
    ['whose exp is text', () => signed(header, claims({ exp: String(seconds() + 600) }))],
    ['whose exp is beyond numbers', () => signed(header, claims({ exp: null }))],
    ['that ends now', () => signed(header, claims({ exp: seconds() }))],
    ['that has ended', () => signed(header, claims({ iat: seconds() - 60, exp: seconds() - 1 }))],
    ['of a session that does not exist', () => signed(header, claims({ jti: 'no-such-session.0' }))],
    ['whose jti has no session', () => signed(header, claims({ jti: '.0' }))],
    ['of the session of someone else', () => signed(header, claims({ sub: 'alice' }))],
    ['with a role that there is not', () => signed(header, claims({ role: 'root' }))],
    ['of 8 000 characters', () => 'A'.repeat(8_000)],
    ['of 8 000 characters in the right form', () => signed(header, claims({ sub: 'b'.repeat(6_000) }))],
    ['that is good but for a space inside', () => good.replace('.', ' .')],
    ['that is twice in one header', () => `${good}, ${good}`],
    ['behind Bearer twice', () => `Bearer Bearer ${good}`],
    ['behind another scheme', () => `Basic ${good}`],
  ])('a token %s is refused', async (_what, make) => {
    expect(await status(make())).toBe(401)
  })

  it('a token made of the parts of two good tokens is refused', async () => {
    const other = (await edge.login('alice')).access
    const [head = '', body = '', signature = ''] = good.split('.')
    const [otherHead = '', otherBody = '', otherSignature = ''] = other.split('.')
    expect(await status(other)).toBe(200)
    expect(await status([head, body, otherSignature].join('.'))).toBe(401)
    expect(await status([head, otherBody, signature].join('.'))).toBe(401)
    expect(await status([otherHead, body, otherSignature].join('.'))).toBe(401)
  })

  it('a token with one other bit in its signature is refused', async () => {
    const [head = '', body = '', signature = ''] = good.split('.')
    for (let byte = 0; byte < 32; byte += 1) {
      const bytes = Buffer.from(signature, 'base64url')
      bytes[byte] = (bytes[byte] ?? 0) ^ 1
      expect(await status([head, body, bytes.toString('base64url')].join('.')), String(byte)).toBe(401)
    }
  })

  it('an accepted token is refused after its logout', async () => {
    const { access } = await edge.login('bob')
    expect(await status(access)).toBe(200)
    await edge.post(logoutPath, undefined, { headers: { authorization: access } })
    expect(await status(access)).toBe(401)
  })

  it('a token is refused by a daemon with another secret and the same records', async () => {
    const other = await createTestEdge({ host: edge.host })
    expect((await other.get(currentPath, good)).statusCode).toBe(401)
    await other.stop()
  })
})

it('two tokens that begin alike are not confused', async () => {
  const alice = (await edge.login('alice')).access
  const names = []
  for (const token of [good, alice, good, alice])
    names.push((await edge.get(currentPath, token)).json<{ userName: string }>().userName)
  expect(names).toEqual(['bob', 'alice', 'bob', 'alice'])
})
