import { createHmac, createSecretKey, KeyObject } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { deriveKeys, makeRefreshToken, parseRefreshToken } from '../../../src/auth/tokens.ts'
import { createSecret, createSecrets } from '../../../src/secrets/secrets.ts'

const secret = Buffer.alloc(32, 7)
const claims = { sessionUid: '0b9e1d3c-1f5a-4a4e-9d53-6f1c2b3a4d5e', generation: 3 }

describe('keys', () => {
  it('keys are 256 bits each, all different, and the same for the same secret', () => {
    const derive = () =>
      Object.values(deriveKeys(createSecrets(secret))).map((key: Buffer | KeyObject) =>
        (key instanceof KeyObject ? key.export() : key).toString('hex'),
      )
    const all = [...derive(), secret.toString('hex')]
    expect(derive()).toEqual(derive())
    expect(new Set(all).size).toBe(5)
    expect(all.every((key) => key.length === 64)).toBe(true)
  })

  it('no two secrets are the same', () => {
    expect(createSecret()).toHaveLength(32)
    expect(createSecret().equals(createSecret())).toBe(false)
  })
})

describe('a refresh token', () => {
  const { refresh: key, access } = deriveKeys(createSecrets(secret))
  const token = makeRefreshToken(key, claims)
  const [body = '', code = ''] = token.split('.')
  const sign = (text: string) =>
    `${Buffer.from(text).toString('base64url')}.${createHmac('sha256', key).update(text).digest('base64url')}`

  it('a refresh token contains its session and generation', () => {
    expect(parseRefreshToken(key, token)).toEqual(claims)
  })

  it('a refresh token is the same for the same session and generation, and another for the next', () => {
    expect(makeRefreshToken(key, claims)).toBe(token)
    expect(makeRefreshToken(key, { ...claims, generation: 4 })).not.toBe(token)
  })

  it.each([
    ['nothing', ''],
    ['a dot', '.'],
    ['no code', `${body}.`],
    ['no claims', `.${code}`],
    ['a third part', `${token}.x`],
    ['a code that is cut off', token.slice(0, -2)],
    [
      'the code of another generation',
      `${body}.${makeRefreshToken(key, { ...claims, generation: 4 }).split('.')[1]}`,
    ],
    ['the key of access tokens', makeRefreshToken(createSecretKey(access), claims)],
    ['more than 512 characters', `${'A'.repeat(600)}.${code}`],
    ['signed text of another form', sign('hello')],
    ['a signed negative generation', sign(`${claims.sessionUid}.-1`)],
  ])('a refresh token is refused when it is or has %s', (_what, bad) => {
    expect(parseRefreshToken(key, bad)).toBeUndefined()
  })

  it('a refresh token is refused when any one character is another', () => {
    for (let index = 0; index < body.length; index += 1) {
      const changed = `${token.slice(0, index)}${token[index] === 'A' ? 'B' : 'A'}${token.slice(index + 1)}`
      expect(parseRefreshToken(key, changed), String(index)).toBeUndefined()
    }
  })
})
