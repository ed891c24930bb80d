import { truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { costlyVariables } from '../support/costly-patterns.ts'
import { definitionArchive } from '../support/definition-archives.ts'
import { rawMember } from '../support/tar-bytes.ts'
import { definitionsOf, type Definitions } from './host/definitions.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { noise } from '../support/random.ts'

const right = 'right canary 1302'
const MB = 1_000_000
const state = '/var/lib/edgehostd'

let host: Edgehostd
let definitions: Definitions
let token: string

beforeAll(async () => {
  host = await bootEdgehostd({ lower: 'machine' })
  await host.addUser({ name: 'anna', password: right, groups: ['sudo'] })
  token = (await host.openSession('anna', right)).token
  definitions = definitionsOf(host, token)
})
afterAll(() => host.unplug())

describe('a hostile upload', () => {
  it('a file of 200 MB that is not an archive is refused long before its end', async () => {
    const file = join(host.folder, 'garbage.tgz')
    await writeFile(file, '')
    await truncate(file, 200 * MB)
    const before = await definitions.details()
    const reply = await definitions.upload(file, { limitRate: '40M' })
    expect(reply).toMatchObject({
      status: 400,
      json: { code: 'ArchiveDamaged', details: { reason: 'NotCompressed' } },
    })
    expect(reply.sentBytes).toBeLessThan(100 * MB)
    await definitions.expectNothingLeft()
    expect((await definitions.details()).text).toBe(before.text)
  })

  it('a bomb of 1 GB is refused with bounded memory, while other requests are answered', async () => {
    const zeros = Buffer.alloc(16 * 2 ** 20)
    const header = rawMember({ name: 'packs/a', size: 64 * zeros.length }).subarray(0, 512)
    // Consecutive gzip members are one stream.
    const bomb = Buffer.concat([gzipSync(header), ...Array<Buffer>(64).fill(gzipSync(zeros, { level: 9 }))])
    expect(bomb.length).toBeLessThan(2 * MB)
    const file = join(host.folder, 'bomb.tgz')
    await writeFile(file, bomb)
    await host.output(['systemctl', 'restart', 'edgehostd'])
    const load = await host.startLoad({ path: '/v1/ping', clients: 1, pauseMs: 10 })
    const begun = performance.now()
    for (let round = 0; round < 3; round += 1)
      expect(await definitions.upload(file)).toMatchObject({ status: 400, json: { code: 'ArchiveTooLarge' } })
    const roundMs = (performance.now() - begun) / 3
    const { outcomes, slowestMs } = await load.stop()
    expect(Object.keys(outcomes)).toEqual(['200'])
    // None waits for an examination, however long that takes on a busy machine.
    expect(slowestMs).toBeLessThan(roundMs / 2)
    const status = await host.read(`/proc/${await host.mainPid()}/status`)
    expect(Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1])).toBeLessThan(160_000)
    await definitions.expectNothingLeft()
  })
})

describe('a definition of patterns that would take all memory', () => {
  const validate = (archiveUploadPath: string, variables: object[]) =>
    host.http('POST', '/v1/edge-mgmt/cluster/profiles/variables/validate', {
      token,
      body: { archiveUploadPath, variables },
    })

  it('a definition of too large patterns is refused with its variables by name', async () => {
    const values = costlyVariables.map(({ name }) => `${name}: "{{ .spectro.var.${name} }}"\n`).join('')
    const file = join(host.folder, 'costly.tgz')
    await writeFile(file, definitionArchive({ variables: costlyVariables, values }))
    const { status, json } = await definitions.upload(file)
    expect({ status, code: json.code }).toEqual({ status: 400, code: 'DefinitionInvalid' })
    expect(json.details.problems[0]).toMatchObject({
      code: 'VariablePatternInvalid',
      message: expect.stringMatching(/^variable v0 has a regex that needs about/) as string,
    })
    await definitions.expectNothingLeft()
  })

  it('a definition of too large patterns in a slot does not end the daemon, nor after a restart', async () => {
    await definitions.take('1.0.0')
    const { uid, archiveUploadPath } = (await definitions.details()).json as Record<string, string>
    const place = 'profiles/u1/profile.json'
    await host.write(
      `${state}/definitions/${uid}/profiles.json`,
      JSON.stringify([{ place, uid: 'u1', name: 'profile u1', variables: costlyVariables }]),
    )
    for (let round = 0; round < 2; round += 1) {
      const pid = await host.mainPid()
      const load = await host.startLoad({ path: '/v1/ping', clients: 1, pauseMs: 10 })
      const replies = [
        await validate(archiveUploadPath!, [{ name: 'v0', value: 'x'.repeat(60_000) }]),
        await validate(archiveUploadPath!, []),
      ]
      const { outcomes } = await load.stop()
      for (const { status, json: judged } of replies) {
        expect(status).toBe(200)
        expect(judged.variables).toHaveLength(20)
        expect(judged.variables[0].validationFailureReason).toMatch(/^v0 has a regex that needs about/)
      }
      expect(Object.keys(outcomes)).toEqual(['200'])
      expect(await host.mainPid()).toBe(pid)
      await host.output(['systemctl', 'restart', 'edgehostd'])
    }
    await definitions.take('1.0.1')
  })
})

describe('a definition of 200 MB', () => {
  it('a definition of 200 MB does not take that much memory', async () => {
    const charts = Array.from({ length: 10 }, (_, index) => `packs/web-shop-1.0/charts/${index}.tgz`)
    const files = Object.fromEntries(charts.map((path) => [path, noise(20 * MB)]))
    const file = join(host.folder, 'large.tgz')
    await writeFile(file, definitionArchive({ files }))
    const pid = await host.mainPid()
    const kB = async (field: string) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(await host.read(`/proc/${pid}/status`))?.[1])
    // Resets the peak: proc(5).
    await host.sh('echo 5 > /proc/$1/clear_refs', String(pid))
    const before = await kB('VmRSS')
    expect(await definitions.upload(file)).toMatchObject({ status: 201 })
    expect((await kB('VmHWM')) - before).toBeLessThan(60_000)
    await definitions.expectNothingLeft()
  })
})

describe('a disk that is full', () => {
  let file: string
  beforeAll(async () => {
    file = join(host.folder, 'large.tgz')
    // Random bytes cannot be compressed.
    const files = { 'packs/web-shop-1.0/charts/a.tgz': noise(20 * MB) }
    await writeFile(file, definitionArchive({ version: '20.0.0', files }))
    await definitions.take('1.0.0')
    await host.write('/etc/edgehostd/config.d/full.yaml', `definitions: {upload: {reserveBytes: ${MB}}}\n`)
    await host.sh(`
      systemctl stop edgehostd
      cp -a /var/lib/edgehostd /root/state; rm -f /root/state/reserve
      mount -t tmpfs -o size=16m,mode=700 none /var/lib/edgehostd
      cp -a /root/state/. /var/lib/edgehostd
      systemctl start edgehostd`)
  })

  it('a full disk is noticed by the length of an upload: 507 before hardly a byte is sent', async () => {
    const before = await definitions.details()
    const reply = await definitions.upload(file)
    expect(reply).toMatchObject({ status: 507, json: { code: 'StorageFull' } })
    expect(reply.json.details.missingBytes).toBeGreaterThan(0)
    expect(reply.sentBytes).toBeLessThan(MB)
    await definitions.expectNothingLeft()
    expect((await definitions.details()).text).toBe(before.text)
  })

  it('a full disk ends an upload of unknown length with a 507, and its space is freed', async () => {
    const before = await definitions.details()
    const freeBytes = async () =>
      Number((await host.sh('df --block-size=1 --output=avail /var/lib/edgehostd | tail -n 1')).trim())
    const free = await freeBytes()
    const reply = await definitions.upload(file, { headers: { 'Transfer-Encoding': 'chunked' } })
    expect(reply).toMatchObject({ status: 507, json: { code: 'StorageFull' } })
    await definitions.expectNothingLeft()
    expect((await definitions.details()).text).toBe(before.text)
    // Except for the space that the audit trail needs.
    expect(free - (await freeBytes())).toBeLessThan(MB)
    await definitions.take('3.0.0')
  })

  it('a full disk keeps the embedded definition from being used until it has space again', async () => {
    const text = '# a manifest\n'.repeat(200_000)
    const archive = definitionArchive({ files: { 'packs/web-shop-1.0/manifests/a.yaml': text } })
    await host.sh('fallocate --length $(df --block-size=1 --output=avail $1 | tail -n 1) $1/ballast', state)
    await host.sh('truncate --size=-1M $1/ballast', state)
    await host.write('/usr/share/edgehostd/definition.tgz', archive)
    for (let look = 0; look < 2; look += 1)
      expect((await definitions.details('embedded')).json.problems).toMatchObject([{ code: 'StorageFull' }])
    await host.sh('rm $1/ballast', state)
    const { json } = await definitions.details('embedded')
    expect(json).toMatchObject({ problems: [], clusterProfileDetails: [{ profileVersion: '1.0.0' }] })
    await host.sh('rm /usr/share/edgehostd/definition.tgz')
    await definitions.details('embedded')
  })

  it('a disk without free inodes counts as full', async () => {
    const inodes = async (what: string) => Number((await host.sh(`stat -f -c %${what} ${state}`)).trim())
    const all = await inodes('c')
    await host.sh(`mount -o remount,nr_inodes=${all - (await inodes('d'))} ${state}`)
    const reply = await definitions.upload(join(host.folder, '3.0.0.tgz'))
    await host.sh(`mount -o remount,nr_inodes=${all} ${state}`)
    expect(reply).toMatchObject({ status: 507, json: { code: 'StorageFull' } })
    await definitions.take('3.0.1')
  })
})

describe('the journal', () => {
  it('the journal warns of the full disk, one line each time, and of nothing else', async () => {
    const warnings = (await host.log()).filter(({ priority }) => priority <= 4)
    expect(warnings.map(({ code }) => code)).toEqual(Array<string>(4).fill('StorageFull'))
  })
})
