import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { definitionArchive } from '../support/definition-archives.ts'
import { definitionsOf, uploadPath, type Definitions } from './host/definitions.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { output } from './host/process.ts'

const right = 'right canary 1401'
const keyPath = '/v1/edge-mgmt/edgehosts/current/actions/content/signing-public-key'
const embeddedFile = '/usr/share/edgehostd/definition.tgz'

let host: Edgehostd
let token: string
let viewerToken: string
let definitions: Definitions
const path = (name: string) => join(host.folder, name)

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'victor', password: right })
  token = (await host.openSession('anna', right)).token
  viewerToken = (await host.openSession('victor', right)).token
  definitions = definitionsOf(host, token)
  await writeFile(path('one.tgz'), definitionArchive({ version: '1.0.0' }))
  await writeFile(path('two.tgz'), definitionArchive({ version: '2.0.0' }))
})
afterAll(() => host.unplug())

const openssl = (...args: string[]) => output('openssl', args)

/** Makes a key as the documentation says. @returns base64 of the public key, for the configuration */
async function makeKey(name: string, kind: readonly string[]): Promise<string> {
  await openssl('genpkey', ...kind, '-out', path(`${name}.key`))
  await openssl('pkey', '-in', path(`${name}.key`), '-pubout', '-out', path(`${name}.pub`))
  return (await readFile(path(`${name}.pub`))).toString('base64')
}

/** @returns path of the signature */
async function sign(key: string, file: string): Promise<string> {
  const made = path(`${file}.${key}.sig`)
  await openssl('dgst', '-sha256', '-sign', path(`${key}.key`), '-out', made, path(file))
  return made
}

const configure = (base64EncodedValue: string) =>
  host.configure(
    'signing',
    `content: {signing: {publicKey: {base64EncodedValue: "${base64EncodedValue}", description: Plant 7}}}\n`,
  )

describe('a host without a signing key', () => {
  it('a host without a signing key shows none', async () => {
    const reply = await host.http('GET', keyPath, { token: viewerToken })
    expect(reply).toMatchObject({ status: 404, json: { code: 'NotFound' } })
    expect(reply.json.message).toContain('content.signing.publicKey')
  })
})

describe.each([
  ['EC', ['-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256']],
  ['RSA', ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:3072']],
])('a host with a signing key of %s', (name, kind) => {
  let key: string
  beforeAll(async () => {
    key = await makeKey(name, kind)
    await configure(key)
  })

  it('a host shows its signing key to every user who is logged in', async () => {
    const { json, status } = await host.http('GET', keyPath, { token: viewerToken })
    expect({ status, ...json }).toMatchObject({ status: 200, key, description: 'Plant 7' })
    expect(Date.parse(json.creationTimestamp as string)).toBeGreaterThan(Date.now() - 600_000)
  })

  it.each(['before', 'after'])('a file is accepted with its signature %s it', async (place) => {
    const parts = [`signature=@${await sign(name, 'one.tgz')}`, `uploadFile=@${path('one.tgz')}`]
    const form = place === 'before' ? parts : parts.toReversed()
    expect(await host.http('POST', uploadPath, { token, form })).toMatchObject({ status: 201 })
    expect((await definitions.details()).json.fileName).toBe('one.tgz')
  })

  it('a signature is accepted as base64 text', async () => {
    const text = (await readFile(await sign(name, 'two.tgz'))).toString('base64')
    const reply = await definitions.upload(path('two.tgz'), { form: [`signature=${text}`] })
    expect(reply).toMatchObject({ status: 201 })
  })

  it('a missing signature and that of another file are refused, and the slot is unchanged', async () => {
    const before = await definitions.details()
    const stored = await definitions.stored()
    const other = `signature=@${await sign(name, 'two.tgz')}`
    expect(await definitions.upload(path('one.tgz'))).toMatchObject({
      status: 400,
      json: { code: 'SignatureMissing' },
    })
    expect(await definitions.upload(path('one.tgz'), { form: [other] })).toMatchObject({
      status: 400,
      json: { code: 'SignatureInvalid' },
    })
    expect((await definitions.details()).text).toBe(before.text)
    expect(await definitions.stored()).toEqual(stored)
    expect(await definitions.examinations()).toEqual([])
  })
})

describe('a signing key that cannot be used', () => {
  it('an unusable signing key keeps the daemon from starting, with 78 and the command that helps', async () => {
    const pid = await host.mainPid()
    const secret = (await readFile(path('EC.key'))).toString('base64')
    const file = '/etc/edgehostd/config.d/signing.yaml'
    const good = await host.read(file)
    await host.write(file, `content: {signing: {publicKey: {base64EncodedValue: "${secret}"}}}\n`)
    const advice = /content\.signing\.publicKey: .*openssl pkey -in key\.pem -pubout/

    const checked = await host.run(['edgehostd', '--check-config'])
    expect(checked).toMatchObject({ exitCode: 78, stdout: '' })
    expect(checked.stderr).toMatch(advice)

    await host.output(['kill', '-TERM', String(pid)])
    await eventually(async () =>
      expect(await host.sh('journalctl --no-pager -u edgehostd')).toMatch(/status=78/),
    )
    const said = (await host.log()).filter(({ priority }) => priority <= 3).map(({ msg }) => msg)
    expect(said).toContainEqual(expect.stringMatching(advice))
    // With its place, whatever other problems there are.
    expect(checked.stderr).toContain(`${file}:1`)
    // A private key that was put there by mistake is not shown anywhere.
    expect(await host.sh('journalctl --no-pager')).not.toContain(secret.slice(100, 140))
    expect(checked.stderr).not.toContain(secret.slice(100, 140))

    await host.write(file, good)
    expect((await host.http('GET', keyPath, { token })).status).toBe(200)
  })
})

describe('the definition that an installer placed', () => {
  const embedded = () => definitions.details('embedded')
  let linesBefore: number
  beforeEach(async () => {
    linesBefore = (await host.log()).length
  })
  /** The messages of the daemon about definitions, and all warnings and errors. */
  const said = async () =>
    (await host.log())
      .slice(linesBefore)
      .filter(
        ({ priority, resource }) =>
          priority < 6 || (resource as { kind: string } | undefined)?.kind === 'definition',
      )

  it('the embedded definition needs no signature, although the host has a key', async () => {
    expect((await host.http('GET', keyPath, { token })).status).toBe(200)
    await host.write(embeddedFile, await readFile(path('one.tgz')))
    const { json } = await embedded()
    expect(json).toMatchObject({
      fileName: 'definition.tgz',
      problems: [],
      clusterProfileDetails: [{ profileVersion: '1.0.0' }],
    })
    // journald may not have written it yet.
    await eventually(async () =>
      expect(await said()).toMatchObject([
        { action: 'create', actor: 'edgehostd', resource: { name: 'factory 1.0.0', uid: json.uid } },
      ]),
    )
  })

  it('the embedded definition survives a restart and is not examined again', async () => {
    const before = await embedded()
    const stored = await definitions.stored()
    await host.output(['systemctl', 'restart', 'edgehostd'])
    expect((await embedded()).text).toBe(before.text)
    expect(await definitions.stored()).toEqual(stored)
    expect(await said()).toEqual([])
  })

  it('a damaged embedded file is reported, once in the journal, and is used again when it is repaired', async () => {
    await host.sh('truncate --size=-20 "$1"', embeddedFile)
    const problems = [{ code: 'ArchiveDamaged', severity: 'error', place: embeddedFile }]
    for (let look = 0; look < 3; look += 1)
      expect((await embedded()).json).toMatchObject({
        archiveUploadPath: '',
        clusterProfileDetails: [],
        problems,
      })
    await eventually(async () => {
      const warnings = (await said()).filter(({ priority }) => priority < 6)
      expect(warnings).toMatchObject([{ priority: 4, code: 'ArchiveDamaged', file: embeddedFile }])
      expect(warnings[0]!.msg).toContain(`edgehostctl definition validate ${embeddedFile}`)
    })

    await host.write(embeddedFile, await readFile(path('two.tgz')))
    expect((await embedded()).json).toMatchObject({
      problems: [],
      clusterProfileDetails: [{ profileVersion: '2.0.0' }],
    })
  })
})
