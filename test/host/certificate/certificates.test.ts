import { createPublicKey, X509Certificate } from 'node:crypto'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createCertificates } from '../../../src/certificate/certificates.ts'
import { CertificateUnusable, type CertificateFiles } from '../../../src/certificate/pair.ts'
import { captureLog, makeMaterial } from '../../support/https-server.ts'

const day = 86_400_000
const hour = 3_600_000
const built = Date.UTC(2026, 0, 1)
let folder: string
let time: number
/** Set where it differs from the time. */
let monotonic: number | undefined
let hostName: string
let addresses: readonly string[]
let isHeld: boolean
let logged: ReturnType<typeof captureLog>
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  time = built + day
  monotonic = undefined
  hostName = 'box'
  addresses = ['192.0.2.7']
  isHeld = false
  logged = captureLog()
})
afterEach(() => rmSync(folder, { recursive: true }))

const at = (name: string) => join(folder, 'tls', name)
const modeOf = (name: string) => (statSync(at(name)).mode & 0o777).toString(8)
const keyOf = (cert: string) => createPublicKey(cert).export({ type: 'spki', format: 'der' }).toString('hex')
const create = (own?: CertificateFiles, directory = join(folder, 'tls'), staysForAddresses = false) =>
  createCertificates({
    ...{ directory, staysForAddresses },
    own,
    buildDate: built,
    clock: { now: () => time, monotonic: () => monotonic ?? time },
    log: logged.log,
    isHeld: () => isHeld,
    names: () => ({ hostName, addresses }),
  })

describe("the daemon's own certificate", () => {
  it('a certificate is made on the first start: key 0600, certificate 0644, fingerprint logged', async () => {
    const certificates = create()
    expect(() => certificates.material()).toThrow('ensure')
    expect(await certificates.ensure()).toBe(true)
    expect([modeOf('key.pem'), modeOf('certificate.pem')]).toEqual(['600', '644'])
    const { cert, key } = certificates.material()
    expect([readFileSync(at('certificate.pem'), 'utf8'), readFileSync(at('key.pem'), 'utf8')]).toEqual([
      cert,
      key,
    ])
    expect(certificates.fingerprint()).toBe(new X509Certificate(cert).fingerprint256)
    expect(certificates.fingerprint()).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/)
    expect(certificates.notAfter().getTime()).toBe(time + 825 * day)
    expect(logged.lines.at(-1)).toMatchObject({ fingerprint: certificates.fingerprint() })
    expect(JSON.stringify(logged.lines)).not.toContain('PRIVATE KEY')
  })

  it('a certificate stays the same over starts and checks, without a log line', async () => {
    const first = create()
    await first.ensure()
    logged.lines.length = 0
    const second = create()
    expect(await second.ensure()).toBe(true)
    expect(second.fingerprint()).toBe(first.fingerprint())
    expect(await second.ensure()).toBe(false)
    expect(await second.reload()).toBe(false)
    expect(logged.lines).toEqual([])
  })

  it.each([
    ['at two thirds of its life', () => (time += 551 * day)],
    ['when the host has another name', () => (hostName = 'box2')],
    ['when it is missing', () => rmSync(at('certificate.pem'))],
    ['when it is damaged', () => writeFileSync(at('certificate.pem'), 'nonsense')],
    ['when it is empty', () => writeFileSync(at('certificate.pem'), '')],
  ])('a certificate is renewed %s, with the same key', async (_when, change) => {
    const certificates = create()
    await certificates.ensure()
    const before = { ...certificates.material(), fingerprint: certificates.fingerprint() }
    change()
    const next = create()
    await next.ensure()
    expect(next.fingerprint()).not.toBe(before.fingerprint)
    expect(keyOf(next.material().cert)).toBe(keyOf(before.cert))
    expect(next.material().key).toBe(before.key)
    expect(readFileSync(at('certificate.pem'), 'utf8')).toBe(next.material().cert)
  })

  it('a certificate is renewed while the daemon runs, with the same key', async () => {
    const certificates = create()
    await certificates.ensure()
    const { cert } = certificates.material()
    hostName = 'box2'
    expect(await certificates.ensure()).toBe(true)
    expect(certificates.material().cert).not.toBe(cert)
    expect(keyOf(certificates.material().cert)).toBe(keyOf(cert))
    expect(await certificates.ensure()).toBe(false)
  })

  it('concurrent checks make one certificate, the one in the file', async () => {
    const certificates = create()
    const looks = () => Promise.all([certificates.ensure(), certificates.ensure(), certificates.reload()])
    const made = () => logged.lines.filter(({ msg }) => msg === 'a certificate was made').length
    expect(await looks()).toEqual([true, false, false])
    addresses = [...addresses, '198.51.100.1']
    time += hour
    expect(await looks()).toEqual([true, false, false])
    expect(made()).toBe(2)
    expect(readFileSync(at('certificate.pem'), 'utf8')).toBe(certificates.material().cert)
  })

  it('while it is held no certificate is made, at a start, at a reload, or for a near expiry; one that is missing is, and afterwards what is due', async () => {
    const first = create()
    isHeld = true
    await first.ensure()
    const { cert } = first.material()
    addresses = ['192.0.2.7', '192.0.2.8']
    time += 2 * hour
    const next = create()
    for (const certificates of [first, next]) {
      await certificates.ensure()
      await certificates.reload()
      expect(certificates.material().cert).toBe(cert)
    }
    time += 820 * day
    expect(await next.ensure()).toBe(false)
    isHeld = false
    expect(await next.ensure()).toBe(true)
    expect(new X509Certificate(next.material().cert).checkIP('192.0.2.8')).toBe('192.0.2.8')
  })

  describe('for new addresses', () => {
    const made = () => logged.lines.filter(({ msg }) => msg === 'a certificate was made').length
    const advertise = (count: number) => (addresses = [...addresses, `2001:db8:${count}::7`])

    it('for new addresses a certificate is made at most once an hour, and then for all of them', async () => {
      const certificates = create()
      await certificates.ensure()
      for (let count = 1; count <= 300; count += 1) {
        advertise(count)
        time += 10_000
        await certificates.ensure()
      }
      // All of them within 50 minutes.
      expect(made()).toBe(1)
      expect(logged.lines.filter(({ minutes }) => minutes !== undefined)).toMatchObject([{ minutes: 60 }])
      time += hour / 6
      expect(await certificates.ensure()).toBe(true)
      const { cert } = certificates.material()
      expect(new X509Certificate(cert).checkIP('2001:db8:300::7')).toBe('2001:db8:300::7')
      advertise(301)
      expect(await certificates.ensure()).toBe(false)
      expect(made()).toBe(2)
    })

    it('for new addresses the hour lasts over restarts too', async () => {
      await create().ensure()
      advertise(1)
      for (let starts = 0; starts < 11; starts += 1) {
        time += hour / 12
        await create().ensure()
      }
      expect(made()).toBe(1)
      time += hour / 12
      await create().ensure()
      expect(made()).toBe(2)
    })

    it('for new addresses no certificate is made where it stays, but on a reload', async () => {
      const certificates = create(undefined, undefined, true)
      await certificates.ensure()
      advertise(1)
      for (time += 3 * hour; time < built + 2 * day; time += hour)
        expect(await certificates.ensure()).toBe(false)
      expect(logged.lines.filter(({ msg }) => String(msg).includes('lacks an address'))).toHaveLength(1)
      expect([await certificates.reload(), made()]).toEqual([true, 2])
    })

    it('for new addresses a certificate is made at once on a reload, and for a new host name', async () => {
      const certificates = create()
      await certificates.ensure()
      advertise(1)
      expect(await certificates.ensure()).toBe(false)
      expect(await certificates.reload()).toBe(true)
      hostName = 'box2'
      expect(await certificates.ensure()).toBe(true)
      expect(made()).toBe(3)
    })

    it('for new addresses a certificate is made at once when the first start had no network', async () => {
      addresses = ['fe80::7', '169.254.1.2']
      const certificates = create()
      await certificates.ensure()
      addresses = [...addresses, '192.0.2.7']
      expect(await certificates.ensure()).toBe(true)
      advertise(1)
      expect(await certificates.ensure()).toBe(false)
    })

    it.each([
      ['back', -700 * day],
      ['back to 1970', -built - day],
    ])(
      'for new addresses a certificate waits exactly an hour where the clock was set %s',
      async (_where, byMs) => {
        await create().ensure()
        advertise(1)
        time += byMs
        monotonic = 0
        const certificates = create()
        await certificates.ensure()
        monotonic = hour - 1
        expect(await certificates.ensure()).toBe(false)
        monotonic = hour
        expect(await certificates.ensure()).toBe(true)
      },
    )
  })

  it('a failed check of the certificate is repeated', async () => {
    const certificates = create()
    await certificates.ensure()
    rmSync(at('certificate.pem'))
    mkdirSync(at('certificate.pem'))
    const failed = certificates.ensure()
    const next = certificates.ensure()
    await expect(failed).rejects.toThrow('is a folder')
    await expect(next).rejects.toThrow('is a folder')
    rmSync(at('certificate.pem'), { recursive: true })
    expect(await certificates.ensure()).toBe(false)
    expect(readFileSync(at('certificate.pem'), 'utf8')).toBe(certificates.material().cert)
  })

  it('certificate and key are written again unchanged when their files are removed while the daemon runs', async () => {
    const certificates = create()
    await certificates.ensure()
    const { cert, key } = certificates.material()
    rmSync(at('certificate.pem'))
    rmSync(at('key.pem'))
    expect(await certificates.ensure()).toBe(false)
    expect([readFileSync(at('certificate.pem'), 'utf8'), readFileSync(at('key.pem'), 'utf8')]).toEqual([
      cert,
      key,
    ])
  })

  it('a certificate that does not belong to the key is replaced, and the key kept', async () => {
    const certificates = create()
    await certificates.ensure()
    writeFileSync(at('certificate.pem'), (await makeMaterial()).cert)
    await certificates.ensure()
    expect(keyOf(certificates.material().cert)).toBe(keyOf(certificates.material().key))
    expect(String(logged.lines.at(-1)!.reason)).toContain('does not belong to the key')
  })

  it('a certificate is replaced when its chain is one that TLS refuses', async () => {
    await create().ensure()
    const cert = readFileSync(at('certificate.pem'), 'utf8')
    writeFileSync(
      at('certificate.pem'),
      `${cert}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
    )
    const certificates = create()
    await certificates.ensure()
    expect(keyOf(certificates.material().cert)).toBe(keyOf(cert))
    expect(readFileSync(at('certificate.pem'), 'utf8')).toBe(certificates.material().cert)
    expect(certificates.material().cert.match(/BEGIN/g)).toHaveLength(1)
  })

  it.each(['', 'nonsense', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n'])(
    'certificate and key are replaced, with a warning that names the reason, when the key is %j',
    async (text) => {
      await create().ensure()
      const before = readFileSync(at('certificate.pem'), 'utf8')
      writeFileSync(at('key.pem'), text)
      const certificates = create()
      await certificates.ensure()
      expect(keyOf(certificates.material().cert)).not.toBe(keyOf(before))
      expect(modeOf('key.pem')).toBe('600')
      const warning = logged.lines.find((line) => line.level === 40)
      expect(warning).toMatchObject({ file: at('key.pem'), reason: expect.any(String) as string })
    },
  )

  it('certificate and key are replaced when the key is missing', async () => {
    await create().ensure()
    rmSync(at('key.pem'))
    const certificates = create()
    await certificates.ensure()
    expect(keyOf(certificates.material().cert)).toBe(keyOf(readFileSync(at('key.pem'), 'utf8')))
  })

  it('a key that others can read gets mode 0600, with a warning', async () => {
    await create().ensure()
    chmodSync(at('key.pem'), 0o644)
    await create().ensure()
    expect(modeOf('key.pem')).toBe('600')
    expect(logged.lines.at(-1)).toMatchObject({ level: 40, mode: '644' })
  })

  it('a certificate that cannot be written is served from memory, with an error in the log', async () => {
    // No user can make a folder there, root included.
    const certificates = create(undefined, '/proc/tls')
    await certificates.ensure()
    expect(keyOf(certificates.material().cert)).toBe(keyOf(certificates.material().key))
    expect(logged.lines.some((line) => line.level === 50)).toBe(true)
    expect(await certificates.ensure()).toBe(false)
  })

  it('a certificate is never written through a link', async () => {
    mkdirSync(join(folder, 'tls'))
    writeFileSync(join(folder, 'elsewhere'), 'kept')
    symlinkSync(join(folder, 'elsewhere'), at('certificate.pem'))
    await expect(create().ensure()).rejects.toThrow('not a regular file')
    expect(readFileSync(join(folder, 'elsewhere'), 'utf8')).toBe('kept')
  })
})

describe("an administrator's own certificate", () => {
  const own = () => ({ certificateFile: join(folder, 'own.crt'), keyFile: join(folder, 'own.key') })
  const put = async () => {
    const material = await makeMaterial()
    writeFileSync(own().certificateFile, material.cert)
    writeFileSync(own().keyFile, material.key)
    return material
  }

  it("an administrator's certificate is used as it is, and none is made", async () => {
    time = Date.now()
    const material = await put()
    const certificates = create(own())
    expect(await certificates.ensure()).toBe(true)
    expect(certificates.material()).toEqual(material)
    expect(() => statSync(join(folder, 'tls'))).toThrow('ENOENT')
  })

  it("an administrator's certificate is read again on reload only", async () => {
    time = Date.now()
    await put()
    const certificates = create(own())
    await certificates.ensure()
    const next = await put()
    expect(await certificates.ensure()).toBe(false)
    expect(await certificates.reload()).toBe(true)
    expect(certificates.material()).toEqual(next)
    expect(await certificates.reload()).toBe(false)
  })

  const faults: [string, () => Promise<void> | void, RegExp][] = [
    [
      'the certificate file is missing',
      () => rmSync(own().certificateFile),
      /own\.crt: .*ENOENT.*: see namei -l .*own\.crt, or remove api\.tls from the configuration/,
    ],
    ['the key file is missing', () => rmSync(own().keyFile), /own\.key: .*ENOENT.*: see namei -l .*own\.key/],
    [
      'the certificate is nonsense',
      () => writeFileSync(own().certificateFile, 'x'),
      /own\.crt: .*: it must be PEM: check it with openssl storeutl -noout -text .*own\.crt$/,
    ],
    ['the key is nonsense', () => writeFileSync(own().keyFile, 'x'), /own\.key: /],
    [
      'the key belongs to another certificate',
      async () => writeFileSync(own().keyFile, (await makeMaterial()).key),
      /own\.crt: its first certificate does not belong to the key in .*own\.key: .*openssl x509 -noout -pubkey -in .*own\.crt; openssl pkey -pubout -in .*own\.key$/,
    ],
    [
      'the chain behind the certificate is damaged',
      () =>
        writeFileSync(
          own().certificateFile,
          readFileSync(own().certificateFile, 'utf8') +
            '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
        ),
      /own\.crt: /,
    ],
  ]

  it.each(faults)(
    "an administrator's certificate is refused at the start when %s, with file and reason",
    async (_what, fault, message) => {
      await put()
      await fault()
      const failed = await create(own())
        .ensure()
        .catch((error: unknown) => error)
      expect(failed).toBeInstanceOf(CertificateUnusable)
      expect((failed as Error).message).toMatch(message)
    },
  )

  it.each(faults)(
    "an administrator's certificate stays in use at a reload when %s, and the log says so",
    async (_what, fault, message) => {
      time = Date.now()
      const material = await put()
      const certificates = create(own())
      await certificates.ensure()
      await fault()
      expect(await certificates.reload()).toBe(false)
      expect(certificates.material()).toEqual(material)
      const error = logged.lines.at(-1)!
      expect(error.level).toBe(50)
      expect(error.reason).toMatch(message)
    },
  )

  it("the end of an administrator's certificate is warned of from 30 days before, once a day", async () => {
    await put()
    const certificates = create(own())
    time = Date.now()
    await certificates.ensure()
    const end = certificates.notAfter().getTime()
    time = end - 31 * day
    await certificates.ensure()
    expect(logged.texts()).toEqual([])
    time = end - 29 * day
    await certificates.ensure()
    await certificates.ensure()
    expect(logged.texts()).toEqual([
      expect.stringMatching(/^the certificate expires soon; .*: systemctl (reload|restart) edgehostd$/),
    ])
    time += day
    await certificates.ensure()
    expect(logged.texts()).toHaveLength(2)
  })

  it('an expired certificate of an administrator is used with a warning', async () => {
    await put()
    time = Date.now() + 4_000 * day
    await create(own()).ensure()
    const { certificateFile, keyFile } = own()
    expect(logged.texts()).toEqual([
      `the certificate has expired; put a new pair at ${certificateFile} and ${keyFile}, then: systemctl reload edgehostd`,
    ])
  })
})
