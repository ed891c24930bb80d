import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  generateKey,
  needsRenewal,
  parseKey,
  signCertificate,
  subjectNames,
  type HostNames,
} from '../../../src/certificate/certificate.ts'
import { makeMaterial, openTls, startServer } from '../../support/https-server.ts'

const day = 86_400_000
const built = Date.UTC(2026, 0, 1)
const names: HostNames = {
  hostName: 'box',
  addresses: ['192.0.2.7', '::ffff:192.0.2.8', '2001:db8::7', 'fe80::1%eth0', '169.254.3.4'],
}
const key = generateKey()
const certificateOf = async (now: number, of = names, buildDate = built) =>
  new X509Certificate(await signCertificate({ key, names: of, now, buildDate }))

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'certificate-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('signCertificate', () => {
  it('a certificate names the host, all its addresses and loopback', async () => {
    const certificate = await certificateOf(built)
    for (const name of ['box', 'localhost']) expect(certificate.checkHost(name)).toBe(name)
    for (const ip of [
      '192.0.2.7',
      '192.0.2.8',
      '2001:db8::7',
      'fe80::1',
      '169.254.3.4',
      '127.0.0.1',
      '::1',
    ]) {
      expect(certificate.checkIP(ip)).toBe(ip)
    }
    expect(certificate.checkHost('other')).toBeUndefined()
    expect(certificate.checkIP('192.0.2.9')).toBeUndefined()
  })

  it('a certificate begins at the build date and lasts 825 days from now', async () => {
    const certificate = await certificateOf(built + 40 * day)
    expect(certificate.validFromDate.getTime()).toBe(built)
    expect(certificate.validToDate.getTime()).toBe(built + 865 * day)
  })

  it('a certificate made by a clock in 1970 is valid today', async () => {
    const certificate = await certificateOf(0)
    expect(certificate.validFromDate.getTime()).toBe(built)
    expect(certificate.validToDate.getTime()).toBe(built + 825 * day)
  })

  it('a certificate has a positive serial number of 128 bits, another one each time', async () => {
    const [one, two] = [await certificateOf(built), await certificateOf(built)]
    expect(one.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/)
    expect(two.serialNumber).not.toBe(one.serialNumber)
  })

  it('openssl accepts the certificate as that of a server by its strict rules', async () => {
    const now = Date.now()
    const file = join(folder, 'strict.pem')
    writeFileSync(file, (await certificateOf(now, names, now - day)).toString())
    const verify = [
      'verify',
      '-x509_strict',
      '-purpose',
      'sslserver',
      '-CAfile',
      file,
      '-verify_hostname',
      'box',
      file,
    ]
    expect(execFileSync('openssl', verify, { encoding: 'utf8' })).toContain(': OK')
    const text = execFileSync('openssl', ['x509', '-in', file, '-noout', '-text'], { encoding: 'utf8' })
    expect(text).toContain('ecdsa-with-SHA256')
    expect(text).toMatch(/Basic Constraints: critical\s+CA:FALSE/)
    expect(text).toMatch(/X509v3 Key Usage: critical\s+Digital Signature\n/)
    expect(text).toMatch(/Extended Key Usage: \s+TLS Web Server Authentication\n/)
  })

  it('the certificate is accepted by curl --cacert and by Node with ca', async () => {
    const material = await makeMaterial()
    const file = join(folder, 'ca.pem')
    writeFileSync(file, material.cert)
    const { port, stop } = await startServer(material, (_request, response) => response.end('hello'))
    for (const host of ['localhost', '127.0.0.1', '[::1]']) {
      const { stdout } = await execa('curl', [
        '-sS',
        '--noproxy',
        '*',
        '--cacert',
        file,
        `https://${host}:${port}/`,
      ])
      expect(stdout).toBe('hello')
    }
    const client = await openTls(port, material.cert)
    expect((client.socket as { authorized?: boolean }).authorized).toBe(true)
    await stop()
  })

  it.each([
    ['my_box', 'my_box'],
    ['böx', 'xn--bx-fka'],
    ['BOX.', 'box'],
    ['x'.repeat(63) + '.example.org', 'x'.repeat(63) + '.example.org'],
  ])('a certificate has the odd host name %s as %s', async (hostName, expected) => {
    const certificate = await certificateOf(built, { hostName, addresses: [] })
    expect(certificate.subjectAltName).toContain(`DNS:${expected},`)
    expect(certificate.subject.length).toBeLessThanOrEqual('CN='.length + 64)
  })

  it.each([
    '',
    '(none)',
    'a b',
    'a,DNS:evil.example',
    'x'.repeat(64),
    '-a',
    '10.0.0.1',
    'a..b',
    'a\u0000b',
    '*',
    '😀',
    '*.a',
  ])('a certificate is for localhost when the host name is %j', async (hostName) => {
    const of = { hostName, addresses: ['not an address', ''] }
    const certificate = await certificateOf(built, of)
    const { dns, ip } = subjectNames(of)
    expect(ip).toEqual(['127.0.0.1', '::1'])
    expect(certificate.checkHost('localhost')).toBe('localhost')
    expect(certificate.checkHost('evil.example')).toBeUndefined()
    expect(dns.length).toBeLessThanOrEqual(2)
    expect(needsRenewal(certificate, { names: of, now: built, buildDate: built })).toBe(false)
  })
})

describe('needsRenewal', () => {
  const table: [string, number, Partial<HostNames>, boolean][] = [
    ['right after the start', 0, {}, false],
    ['before two thirds of its life', 549, {}, false],
    ['at two thirds of its life', 550, {}, true],
    ['after its end', 900, {}, true],
    ['by a clock before it begins', -20_000, {}, false],
    ['with another host name', 0, { hostName: 'box2' }, true],
    ['with a domain behind the host name', 0, { hostName: 'box.example.net' }, true],
    ['with another address', 0, { addresses: [...names.addresses, '192.0.2.9'] }, true],
    ['with another IPv6 address', 0, { addresses: ['2001:db8::8'] }, true],
    ['with the addresses in another order', 0, { addresses: names.addresses.toReversed() }, false],
    [
      'with an address written in another way',
      0,
      { addresses: ['2001:DB8:0:0:0:0:0:7', '::ffff:192.0.2.7'] },
      false,
    ],
    ['with an address fewer', 0, { addresses: ['192.0.2.7'] }, false],
    ['with another link-local address', 0, { addresses: ['fe80::2%eth1', '169.254.9.9'] }, false],
    ['with the host name in capitals', 0, { hostName: 'BOX' }, false],
  ]
  it.each(table)('needsRenewal is right %s, after %i days', async (_what, days, change, expected) => {
    const question = { names: { ...names, ...change }, now: built + days * day, buildDate: built }
    expect(needsRenewal(await certificateOf(built), question)).toBe(expected)
  })

  it('needsRenewal does not stay true when the daemon was built long ago', async () => {
    const now = built + 3_000 * day
    expect(needsRenewal(await certificateOf(now), { names, now, buildDate: built })).toBe(false)
  })

  const future = Date.UTC(2099, 0, 1)
  const clocks: [string, string, number, number, boolean][] = [
    ['in the far future', 'is right again', future, built + day, true],
    ['in the far future', 'stands in 1970', future, 0, true],
    ['in the far future', 'still stands there', future, future + day, false],
    ['an hour ahead', 'is right again', built + day + day / 24, built + day, false],
    ['right', 'stands at the build date after a start', built + 1_500 * day, built, false],
    ['right', 'stands in 1970 after a start', built + 1_500 * day, 0, false],
    ['in 1970', 'still stands there', 0, day, false],
    ['in 1970', 'is right, a month after the build', 0, built + 30 * day, false],
    ['in 1970', 'is right, two years after the build', 0, built + 730 * day, true],
  ]
  it.each(clocks)(
    'needsRenewal is right for a certificate made by a clock that was %s, when it %s',
    async (_was, _is, then, now, expected) => {
      expect(needsRenewal(await certificateOf(then), { names, now, buildDate: built })).toBe(expected)
    },
  )
})

describe('certs/make-certificate', () => {
  const make = (...names: string[]) =>
    execFileSync(join(import.meta.dirname, '../../../certs/make-certificate'), [folder, ...names], {
      stdio: 'pipe',
    })
  const made = () => new X509Certificate(readFileSync(join(folder, 'certificate.pem')))

  it('make-certificate makes what the daemon would make, and keeps the key at the next call', () => {
    make('box', '192.0.2.7', '2001:db8::7')
    const first = made()
    const storedKey = parseKey(readFileSync(join(folder, 'key.pem'), 'utf8'))
    expect(first.checkPrivateKey(storedKey)).toBe(true)
    expect(statSync(join(folder, 'key.pem')).mode & 0o777).toBe(0o600)
    const wanted = { hostName: 'box', addresses: ['192.0.2.7', '2001:db8::7'] }
    expect(needsRenewal(first, { names: wanted, now: Date.now(), buildDate: built })).toBe(false)
    make('box2')
    expect(made().fingerprint256).not.toBe(first.fingerprint256)
    expect(made().checkPrivateKey(storedKey)).toBe(true)
  })
})

describe('parseKey', () => {
  it('parseKey parses what generateKey made', () => {
    expect(parseKey(key.export({ type: 'pkcs8', format: 'pem' }).toString()).equals(key)).toBe(true)
  })

  it('parseKey refuses what is not an EC P-256 key', () => {
    const other = execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519'], { encoding: 'utf8' })
    expect(() => parseKey(other)).toThrow('P-256')
    expect(() => parseKey('')).toThrow()
  })
})
