import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { judgeGeneration, type Generations } from '../../../src/platform/hosts/store.ts'
import { parseHostKey, readLoginProof, createNonces } from '../../../src/platform/hosts/login.ts'
import { createTurningClock } from '../../support/turning-clock.ts'

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const proof = { sub: 'host', nonce: 'abc', gen: 3 }
const header = { alg: 'EdDSA', typ: 'edge-login+jwt' }

function jws(payload: unknown = proof, head: unknown = header, key = privateKey): string {
  const content = `${encode(head)}.${encode(payload)}`
  return `${content}.${sign(null, Buffer.from(content), key).toString('base64url')}`
}

describe('the proof of a login', () => {
  it('is what the key of the host has signed', () => {
    expect(readLoginProof(jws(), publicKey)).toEqual(proof)
    expect(readLoginProof(jws({ ...proof, more: 1 }), publicKey)).toEqual(proof)
  })

  const other = generateKeyPairSync('ed25519').privateKey
  const [head, payload, signature] = jws().split('.')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  it.each([
    ['nothing', ''],
    ['the signature of another key', jws(proof, header, other)],
    ['an altered payload', `${head}.${encode({ ...proof, gen: 4 })}.${signature}`],
    ['no signature', `${head}.${payload}.`],
    ['a signature in another spelling', `${jws()}=`],
    ['the algorithm none', `${encode({ ...header, alg: 'none' })}.${payload}.`],
    [
      'the public key as the secret of an HMAC',
      (() => {
        const content = `${encode({ ...header, alg: 'HS256' })}.${payload}`
        return `${content}.${createHmac('sha256', raw).update(content).digest('base64url')}`
      })(),
    ],
    ['another type', jws(proof, { ...header, typ: 'JWT' })],
    ['a key in its header', jws(proof, { ...header, jwk: {} })],
    ['a header that is a list', jws(proof, ['EdDSA', 'edge-login+jwt'])],
    ['four parts', `${jws()}.x`],
    ['no uid', jws({ ...proof, sub: undefined })],
    ['a generation that is text', jws({ ...proof, gen: '3' })],
    ['a negative generation', jws({ ...proof, gen: -1 })],
    ['a generation that is no whole number', jws({ ...proof, gen: 1.5 })],
    ['more text than a proof has', jws({ ...proof, more: 'x'.repeat(2_000) })],
  ])('is not %s', (_what, text) => {
    expect(readLoginProof(text, publicKey)).toBeUndefined()
  })

  it('a key is 32 bytes in one spelling', () => {
    const text = raw.toString('base64url')
    expect(parseHostKey(text)?.equals(publicKey)).toBe(true)
    for (const wrong of ['', `${text}=`, `${text}A`, text.slice(1), raw.toString('hex')])
      expect(parseHostKey(wrong)).toBeUndefined()
  })
})

describe('a nonce', () => {
  const clock = createTurningClock()
  const nonces = createNonces({ clock })

  it('is valid for a minute, for one host', () => {
    const [early, late, tooLate] = [nonces.make('one'), nonces.make('one'), nonces.make('one')]
    expect([nonces.take(early, 'two'), nonces.take(early, 'one')]).toEqual([false, true])
    clock.turn(59_999)
    expect(nonces.take(late, 'one')).toBe(true)
    clock.turn(1)
    expect(nonces.take(tooLate, 'one')).toBe(false)
  })

  it('is valid once, and not for another process', () => {
    const nonce = nonces.make('one')
    expect(createNonces({ clock }).take(nonce, 'one')).toBe(false)
    expect([nonces.take(nonce, 'one'), nonces.take(nonce, 'one')]).toEqual([true, false])
    clock.turn(59_999)
    expect(nonces.take(nonce, 'one')).toBe(false)
  })

  it('is another one each time, and not valid before its time or when it is altered', () => {
    const nonce = nonces.make('one')
    expect(nonces.make('one')).not.toBe(nonce)
    for (let index = 0; index < nonce.length; index += 1) {
      const altered = nonce.slice(0, index) + (nonce[index] === 'A' ? 'B' : 'A') + nonce.slice(index + 1)
      expect(nonces.take(altered, 'one')).toBe(false)
    }
    expect(nonces.take('', 'one')).toBe(false)
    clock.turn(-1)
    expect(nonces.take(nonce, 'one')).toBe(false)
  })
})

describe('the generation of a login', () => {
  const known = (more: Partial<Generations>): Generations => ({
    ...{ last: 5, isUsed: true, isTwice: false, isNextAccepted: false },
    ...more,
  })

  it.each([
    ['the first login', known({ last: 0, isUsed: false }), 0, { next: 1 }],
    ['the last generation', known({}), 5, { next: 6 }],
    ['a lost reply', known({ isUsed: false }), 4, { next: 5 }],
    ['the clone that comes second', known({}), 4, 'twice'],
    ['a much older disk', known({ isUsed: false }), 3, 'twice'],
    ['a platform that was restored', known({ last: 2 }), 5, { next: 6 }],
    ['a host that was seen twice', known({ isTwice: true }), 5, 'twice'],
    ['the choice of an administrator', known({ isTwice: true, isNextAccepted: true }), 1, { next: 6 }],
  ] as const)('%s', (_case, generations, presented, verdict) => {
    expect(judgeGeneration(generations, presented)).toEqual(verdict)
  })

  it('two clones that log in by turns are noticed at the second turn at the latest, whatever replies are lost', () => {
    let state: Generations = { last: 0, isUsed: false, isTwice: false, isNextAccepted: false }
    const disks = [0, 0]
    const turns: (number | 'twice')[] = []
    for (const clone of [0, 1, 0, 1]) {
      const verdict = judgeGeneration(state, disks[clone]!)
      if (verdict === 'twice') {
        turns.push('twice')
        break
      }
      disks[clone] = verdict.next
      state = { ...state, last: verdict.next, isUsed: true }
      turns.push(verdict.next)
    }
    expect(turns).toEqual([1, 'twice'])
  })
})
