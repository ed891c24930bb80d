import { execFileSync } from 'node:child_process'
import { createSign, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { StartError } from '../../../src/errors/start-error.ts'
import {
  createSignatureCheck,
  parseSignature,
  parseSigningKey,
  signatureLimitBytes,
  type SigningKey,
} from '../../../src/upload/signing.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'edgehostd-signing-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
const content = Buffer.from('a definition archive, as bytes\n'.repeat(5_000))
const read = (pem: string | Buffer): SigningKey =>
  parseSigningKey({ base64EncodedValue: pem.toString('base64'), description: 'for tests' })!
const pemOf = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }).toString()

function isValid(key: SigningKey, bytes: Buffer, signature: Buffer, pieceBytes = 65_536): boolean {
  const check = createSignatureCheck(key)
  for (let at = 0; at < bytes.length; at += pieceBytes) check.update(bytes.subarray(at, at + pieceBytes))
  return check.verify(signature)
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}

const makers: [name: string, kind: string, genpkey: string[]][] = [
  ['rsa2048', 'RSA, 2048 bits', ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048']],
  ['rsa4096', 'RSA, 4096 bits', ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:4096']],
  ['p256', 'EC, prime256v1', ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256']],
  ['p384', 'EC, secp384r1', ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384']],
]

describe.each(makers)('a key and a signature of the openssl program: %s', (name, kind, genpkey) => {
  let key: SigningKey
  let signature: Buffer
  beforeAll(() => {
    writeFileSync(join(folder, 'content'), content)
    openssl('genpkey', ...genpkey, '-out', `${name}.pem`)
    key = read(openssl('pkey', '-in', `${name}.pem`, '-pubout'))
    signature = openssl('dgst', '-sha256', '-sign', `${name}.pem`, 'content')
  })

  it('the kind of an openssl key is recognised', () => expect(key.kind).toBe(kind))
  it.each([7, 4_097, 65_536, 1_000_000])(
    'an openssl signature is valid, with the content in pieces of %i bytes',
    (pieceBytes) => {
      expect(isValid(key, content, signature, pieceBytes)).toBe(true)
    },
  )
  it('an openssl signature is invalid with any one bit of it flipped', () => {
    const step = Math.ceil((signature.length * 8) / 64)
    for (let bit = 0; bit < signature.length * 8; bit += step)
      expect(isValid(key, content, flipped(signature, bit)), `bit ${bit}`).toBe(false)
  })
  it('an openssl signature is invalid with one bit of the content flipped, missing or added', () => {
    for (const bit of [0, 8 * 65_536, content.length * 8 - 1])
      expect(isValid(key, flipped(content, bit), signature), `bit ${bit}`).toBe(false)
    expect(isValid(key, content.subarray(1), signature)).toBe(false)
    expect(isValid(key, Buffer.concat([content, Buffer.from([0])]), signature)).toBe(false)
    expect(isValid(key, Buffer.alloc(0), signature)).toBe(false)
  })
  it('an openssl signature is invalid as SHA-512 or SHA-1', () => {
    for (const digest of ['-sha512', '-sha1'])
      expect(isValid(key, content, openssl('dgst', digest, '-sign', `${name}.pem`, 'content'))).toBe(false)
  })
  // A key of 4096 bits takes seconds to make.
  it.skipIf(name === 'rsa4096')('an openssl signature is invalid with another key of the same kind', () => {
    openssl('genpkey', ...genpkey, '-out', `${name}-other.pem`)
    const other = openssl('dgst', '-sha256', '-sign', `${name}-other.pem`, 'content')
    expect(isValid(key, content, other)).toBe(false)
    expect(isValid(read(openssl('pkey', '-in', `${name}-other.pem`, '-pubout')), content, other)).toBe(true)
  })
  it('a signature is parsed as bytes, as hex and as base64, in lines or in one', () => {
    const hex = signature.toString('hex')
    const base64 = signature.toString('base64')
    const lines = openssl('base64', '-e', '-in', writeTemporary('signature', signature))
    const texts = [hex, hex.toUpperCase(), `${hex}\n`, base64, `${base64}\r\n`, lines.toString()]
    for (const text of texts) expect(parseSignature(Buffer.from(text))).toEqual(signature)
    expect(isValid(key, content, parseSignature(signature))).toBe(true)
  })
})

function writeTemporary(name: string, bytes: Buffer): string {
  writeFileSync(join(folder, name), bytes)
  return join(folder, name)
}

describe('signatures made by node:crypto', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const sign = (key: Parameters<ReturnType<typeof createSign>['sign']>[0]) =>
    createSign('sha256').update(content).sign(key)

  it('signatures in RSA PKCS #1 v1.5 and in ECDSA DER are valid', () => {
    expect(isValid(read(pemOf(rsa.publicKey)), content, sign(rsa.privateKey))).toBe(true)
    expect(isValid(read(pemOf(ec.publicKey)), content, sign(ec.privateKey))).toBe(true)
  })
  it('signatures in RSA-PSS, or in ECDSA as r and s side by side, are invalid', () => {
    const pss = sign({ key: rsa.privateKey, padding: 6, saltLength: 32 })
    expect(isValid(read(pemOf(rsa.publicKey)), content, pss)).toBe(false)
    const sides = sign({ key: ec.privateKey, dsaEncoding: 'ieee-p1363' })
    expect(isValid(read(pemOf(ec.publicKey)), content, sides)).toBe(false)
  })
  it('signatures are invalid with the key of the other kind', () => {
    expect(isValid(read(pemOf(ec.publicKey)), content, sign(rsa.privateKey))).toBe(false)
    expect(isValid(read(pemOf(rsa.publicKey)), content, sign(ec.privateKey))).toBe(false)
  })
  it('garbage as a signature is invalid, and no exception', () => {
    const rightLength = Buffer.alloc(256, 0xff)
    const der = Buffer.from('30060201000201ff', 'hex')
    const hugeLength = Buffer.from('3084ffffffff0200', 'hex')
    for (const key of [read(pemOf(rsa.publicKey)), read(pemOf(ec.publicKey))])
      for (const bytes of [Buffer.alloc(0), Buffer.alloc(1), rightLength, der, hugeLength, content])
        expect(isValid(key, content, bytes)).toBe(false)
  })
})

describe('parseSignature', () => {
  it.each([
    ['an empty text', '', ''],
    ['only newlines', '\r\n \n', ''],
    ['an odd number of hex digits, which base64 can be', 'abc', '69b7'],
    ['text that is neither, unchanged', 'no signature!\n', Buffer.from('no signature!\n').toString('hex')],
  ])('parseSignature parses %s', (_, text, hex) =>
    expect(parseSignature(Buffer.from(text)).toString('hex')).toBe(hex),
  )

  it('parseSignature accepts 16 KiB and refuses a byte more', () => {
    expect(parseSignature(Buffer.alloc(signatureLimitBytes, 0xff))).toHaveLength(16_384)
    expect(() => parseSignature(Buffer.alloc(signatureLimitBytes + 1))).toThrow(
      expect.objectContaining({ code: 'SignatureInvalid', status: 400 }),
    )
  })
})

describe('parseSigningKey', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const pem = pemOf(publicKey)
  const readText = (base64EncodedValue: string) =>
    parseSigningKey({ base64EncodedValue, description: 'ours' })

  it('parseSigningKey finds no key in an empty value', () => {
    expect(readText('')).toBeUndefined()
    expect(readText(' \n')).toBeUndefined()
  })
  it('parseSigningKey parses the PEM, its base64 in one line and in lines, to the same PEM', () => {
    const base64 = Buffer.from(pem).toString('base64')
    const lines = base64.replaceAll(/.{76}/g, '$&\n')
    for (const value of [pem, pem.trim(), `${pem}\n`, base64, `${base64}\n`, lines])
      expect(readText(value)).toMatchObject({ pem, kind: 'EC, prime256v1', description: 'ours' })
  })
  it('parseSigningKey parses an RSA key in its own form (PKCS #1)', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).publicKey
    const own = rsa.export({ type: 'pkcs1', format: 'pem' }).toString()
    expect(readText(own)?.key.equals(rsa)).toBe(true)
  })

  const spki = (type: 'ed25519' | 'x25519') => pemOf(generateKeyPairSync(type as 'ed25519').publicKey)
  const refused: [what: string, value: () => string, says: RegExp][] = [
    ['text', () => 'my key', /neither a PEM nor the base64 of one.*openssl pkey/],
    ['base64 of something else', () => Buffer.from('hello').toString('base64'), /neither a PEM/],
    [
      'DER in base64',
      () => publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
      /neither a PEM/,
    ],
    [
      'a private key',
      () => privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      /private.*openssl pkey -in key.pem -pubout/,
    ],
    ['an EC private key', () => privateKey.export({ type: 'sec1', format: 'pem' }).toString(), /private/],
    [
      'a private key behind the public one',
      () => pem + privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      /more than one PEM/,
    ],
    ['a certificate', () => '-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----', /openssl x509/],
    ['half a PEM', () => pem.slice(0, 90), /damaged/],
    ['a damaged PEM', () => pem.replace('MFkw', 'MFkx'), /damaged/],
    [
      'RSA of 1,024 bits',
      () => pemOf(generateKeyPairSync('rsa', { modulusLength: 1_024 }).publicKey),
      /RSA of 1024 bits.*too short.*openssl genrsa/,
    ],
    [
      'RSA-PSS',
      () => pemOf(generateKeyPairSync('rsa-pss', { modulusLength: 2_048 }).publicKey),
      /of the type rsa-pss.*openssl genpkey/,
    ],
    ['Ed25519', () => spki('ed25519'), /of the type ed25519.*openssl genpkey/],
    ['X25519', () => spki('x25519'), /of the type x25519/],
    [
      'EC on a small curve',
      () => pemOf(generateKeyPairSync('ec', { namedCurve: 'secp224r1' }).publicKey),
      /secp224r1, which is too small.*openssl genpkey/,
    ],
  ]
  it.each(refused)('parseSigningKey refuses %s and names the remedy', (_, value, says) => {
    expect(() => readText(value())).toThrow(says)
    expect(() => readText(Buffer.from(value()).toString('base64'))).toThrow(StartError)
  })
  it('parseSigningKey never repeats the value in an error', () => {
    const secret = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    let message = ''
    try {
      readText(secret)
    } catch (error) {
      message = (error as Error).message
    }
    expect(message).not.toContain(secret.split('\n')[1]!.slice(0, 10))
  })
})
