import { createHmac, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deriveKeys } from '../../src/auth/tokens.ts'
import { createSecrets } from '../../src/secrets/secrets.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'

const right = 'right canary 0701'

let host: Edgehostd
let token: string
let key: Buffer

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'berta', password: right })
  token = (await host.openSession('anna', right)).token
  const secret = await readFile(`/proc/${host.leader}/root/var/lib/edgehostd/secret`)
  key = deriveKeys(createSecrets(secret)).access
})
afterAll(() => host.unplug())

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const decode = (part: string) =>
  JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>
const parts = (jwt: string) => jwt.split('.') as [string, string, string]

/** A token signed by HMAC. */
function forge(header: unknown, payload: unknown, secret: string | Buffer = key, digest = 'sha256'): string {
  const content = `${encode(header)}.${encode(payload)}`
  return `${content}.${createHmac(digest, secret).update(content).digest('base64url')}`
}

const claims = () => decode(parts(token)[1])
const hs256 = { alg: 'HS256', typ: 'JWT' }
const now = () => Math.floor(Date.now() / 1_000)

describe('an access token', () => {
  it('an access token has the user, the session, the times and the role, and nothing else', () => {
    expect(decode(parts(token)[0])).toMatchObject({ alg: 'HS256' })
    expect(Object.keys(claims()).sort()).toEqual(['exp', 'iat', 'jti', 'role', 'sub'])
    expect(claims()).toMatchObject({ sub: 'anna', role: 'admin' })
    expect((claims().exp as number) - (claims().iat as number)).toBe(15 * 60)
  })

  it("a token made by hand like the daemon's is accepted, so that the attacks below fail for their change", async () => {
    expect(await host.statusOf(forge(hs256, { ...claims(), iat: now() - 1, exp: now() + 60 }))).toBe(200)
  })

  const attacks: Record<string, () => string> = {
    'alg none': () => `${encode({ alg: 'none' })}.${parts(token)[1]}.`,
    'alg None': () => `${encode({ alg: 'None' })}.${parts(token)[1]}.`,
    'alg NONE with the old signature': () =>
      `${encode({ alg: 'NONE' })}.${parts(token)[1]}.${parts(token)[2]}`,
    'alg HS384': () => forge({ alg: 'HS384' }, claims(), key, 'sha384'),
    'alg HS512': () => forge({ alg: 'HS512' }, claims(), key, 'sha512'),
    'alg RS256': () => {
      const content = `${encode({ alg: 'RS256' })}.${encode(claims())}`
      const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
      return `${content}.${sign('sha256', Buffer.from(content), privateKey).toString('base64url')}`
    },
    'alg ES256': () => {
      const content = `${encode({ alg: 'ES256' })}.${encode(claims())}`
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const signature = sign('sha256', Buffer.from(content), { key: privateKey, dsaEncoding: 'ieee-p1363' })
      return `${content}.${signature.toString('base64url')}`
    },
    'an empty signature': () => `${parts(token)[0]}.${parts(token)[1]}.`,
    'no signature': () => `${parts(token)[0]}.${parts(token)[1]}`,
    'header and payload swapped': () => `${parts(token)[1]}.${parts(token)[0]}.${parts(token)[2]}`,
    'the payload of another': () =>
      `${parts(token)[0]}.${encode({ ...claims(), sub: 'root' })}.${parts(token)[2]}`,
    'a changed byte of the signature': () => {
      const [header, payload, signature] = parts(token)
      return `${header}.${payload}.${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
    },
    'a list for a payload': () => forge(hs256, [claims()]),
    'text for a payload': () => forge(hs256, 'anna'),
    'null for a payload': () => forge(hs256, 'null'),
    'no end': () => forge(hs256, { ...claims(), exp: undefined }),
    'no beginning': () => forge(hs256, { ...claims(), iat: undefined }),
    'no role': () => forge(hs256, { ...claims(), role: undefined }),
    'an unknown role': () => forge(hs256, { ...claims(), role: 'root' }),
    'an end that is text': () => forge(hs256, { ...claims(), exp: String(now() + 600) }),
    'an end that is now': () => forge(hs256, { ...claims(), iat: now() - 900, exp: now() }),
    'an end in the past': () => forge(hs256, { ...claims(), iat: now() - 1_800, exp: now() - 900 }),
    'another secret': () => forge(hs256, claims(), randomBytes(32)),
    'an empty secret': () => forge(hs256, claims(), ''),
    "the certificate's text as secret": () => forge(hs256, claims(), certificate),
    'a session that never was': () =>
      forge(hs256, { ...claims(), jti: '00000000-0000-4000-8000-000000000000.0' }),
    'the session of another user': () => forge(hs256, { ...claims(), sub: 'berta' }),
    'a jwk header that brings its own key': () => {
      const jwk = { kty: 'oct', k: randomBytes(32).toString('base64url') }
      return forge(
        { ...hs256, jwk, kid: '../../dev/null', jku: 'https://10.77.0.2/jwks' },
        claims(),
        randomBytes(32),
      )
    },
    'nothing in it': () => '',
    'dots alone': () => '..',
  }
  let certificate = ''
  beforeAll(async () => {
    certificate = await readFile(host.cacert, 'utf8')
  })

  it.each(Object.entries(attacks))('a token with %s is refused', async (_, attack) => {
    const reply = await host.http('GET', '/v1/users/current', { token: attack() })
    expect(reply).toMatchObject({ status: 401, json: { code: 'Unauthenticated' } })
    expect(await host.statusOf(token)).toBe(200)
  })

  it('a revoked token is refused, at once and after a restart', async () => {
    const revoked = (await host.openSession('berta', right)).token
    expect((await host.http('POST', '/v1/users/default/logout', { token: revoked })).status).toBeLessThan(300)
    expect(await host.statusOf(revoked)).toBe(401)
    await host.output(['systemctl', 'restart', 'edgehostd'])
    expect(await host.statusOf(revoked)).toBe(401)
    expect(await host.statusOf(token)).toBe(200)
  })

  it('other spellings of a path give no access without a token', async () => {
    for (const path of ['/v1/users/current', '/v1/users/sessions', '/v1/edge-mgmt/edgehosts/current']) {
      for (const target of [
        path,
        `/${path}`,
        path.replace('/v1', '/v1/.'),
        path.replace('/v1', '/v1/%2e'),
        `${path}/`,
      ]) {
        expect([401, 404], target).toContain((await host.http('GET', target)).status)
      }
      expect((await host.http('GET', path)).status).toBe(401)
    }
  })

  it('the secret of the tokens is readable by root only', async () => {
    const stat = await host.output(['stat', '-c', '%a %U %s', '/var/lib/edgehostd/secret'])
    expect(stat.trim()).toBe('600 root 32')
  })
})
