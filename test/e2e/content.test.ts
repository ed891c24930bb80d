import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { definitionArchive } from '../support/definition-archives.ts'
import { writeLayoutFolder } from '../support/layout-files.ts'
import { createLayout, type TestLayout } from '../support/layouts.ts'
import { addRunnableImage, busyboxLayer } from '../support/runnable-images.ts'
import { rawTar } from '../support/tar-bytes.ts'
import { layBridge, type Bridge } from './host/bridge.ts'
import { bootEdgehostd, type Edgehostd } from './host/edgehostd.ts'
import { eventually } from './host/eventually.ts'
import { openPane } from './host/pane.ts'
import { output } from './host/process.ts'
import { noise } from '../support/random.ts'

const right = 'content canary 0801'
const MB = 1_000_000
const content = '/var/lib/edgehostd/content'
const api = '/v1/edge-mgmt/content'
const filePath = '/v1/edge-mgmt/edgehosts/current/actions/upload-content'

let host: Edgehostd
let other: Edgehostd
let bridge: Bridge
/** A folder of the machine that is mounted at the folder of the content. */
let disk: string
let token: string
let viewerToken: string
/** Bytes of all blobs of the bundle. */
let totalBytes: number
let indexDigest: string
let uid: string

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const onOther = (path: string) => `/proc/${other.leader}/root${path}`
const get = async (path: string, as = token) => host.http('GET', path, { token: as })

/** edgehostctl on the other host. */
const there = (...args: readonly string[]) =>
  other.run(['edgehostctl', '--host', bridge.addresses[0]!, ...args])

async function uploaded(...args: readonly string[]) {
  const ended = await there('content', 'upload', ...args, '-o', 'json')
  expect(ended, ended.stderr).toMatchObject({ exitCode: 0 })
  return JSON.parse(ended.stdout) as { uid: string; isNew: boolean; sentBytes: number }
}

interface Entry {
  readonly name?: string
  readonly platforms: readonly object[]
}

const image = (layout: TestLayout, architecture: string, ...tars: readonly Buffer[]) =>
  addRunnableImage(layout, { layers: tars.map((tar) => ({ tar })), architecture })

/** Busybox for a platform that is carried and one that is not, and a large image on the same layer. */
function writeImages(): void {
  const layout = createLayout()
  const busybox = busyboxLayer()
  const here = image(layout, 'amd64', busybox)
  const absent = image(layout, 'arm64', Buffer.from('arm'))
  layout.list(layout.index([here, absent]), { 'io.containerd.image.name': 'busybox:1.35' })
  for (const hex of [absent.digest.slice(7), sha256(Buffer.from('arm'))]) layout.blobs.delete(hex)
  layout.list(image(layout, 'amd64', busybox, noise(120 * MB), noise(50 * MB)), {
    'io.containerd.image.name': 'registry.example/plant/large:1',
  })
  writeLayoutFolder(onOther('/srv/images'), layout)
}

const chart = () =>
  execFileSync('gzip', ['-nc'], {
    input: rawTar([
      {
        name: 'web-shop/Chart.yaml',
        content: Buffer.from('apiVersion: v2\nname: web-shop\nversion: 1.4.0\n'),
      },
    ]),
  })

/** Names of the blobs on the disk with another digest. */
const differing = () =>
  host.sh(
    `cd ${content}/blobs/sha256; sha256sum * | while read -r sum name; do [ $sum = $name ] || echo $name; done`,
  )

async function configure(yaml = ''): Promise<void> {
  await host.configure(
    'content',
    `content:\n  requireMount: true\n  reserve: {percent: 0, leastBytes: 1000000}\n${yaml}`,
  )
}

beforeAll(async () => {
  disk = await mkdtemp(join(tmpdir(), `edgehost-${process.pid}-content-`))
  const nspawn = [`--bind=${disk}:${content}`]
  ;[host, other] = await Promise.all([
    bootEdgehostd({ lower: 'machine', wire: false, nspawn }),
    bootEdgehostd({ lower: 'machine', wire: false }),
  ])
  bridge = await layBridge([host.leader, other.leader])
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
  await host.addUser({ name: 'guest', password: right })
  await configure()
  await host.trust()
  token = (await host.openSession('chief', right)).token
  viewerToken = (await host.openSession('guest', right)).token
  const shown = await host.output(['edgehostctl', '-o', 'json', 'status'])
  const { fingerprint } = JSON.parse(shown).service.certificate
  const login = ['edgehostctl', '--host', bridge.addresses[0]!, '--fingerprint', fingerprint as string]
  await other.output([...login, 'login', 'chief', '--password-stdin'], { input: `${right}\n` })

  await other.output(['mkdir', '-p', '/srv'])
  writeImages()
  await other.write('/srv/web-shop-1.4.0.tgz', chart())
  await other.write('/srv/notes', noise(25 * MB))
  await other.write('/srv/definition.tgz', definitionArchive({ version: '4.2.0' }))
})
afterAll(async () => {
  await bridge.cut()
  await Promise.all([host.unplug(), other.unplug()])
  await rm(disk, { recursive: true, force: true })
})

const contentBuild =
  'edgehostctl content build --oci-layout /srv/images --chart /srv/web-shop-1.4.0.tgz --file notes=/srv/notes --definition /srv/definition.tgz'

describe('edgehostctl content build', () => {
  it('a bundle of 200 MB is built, the same again has the same bytes, and inspect shows what it has', async () => {
    await other.sh(`cd /srv; ${contentBuild} --output bundle.tar; ${contentBuild} --output again.tar`)
    await other.output(['cmp', '/srv/bundle.tar', '/srv/again.tar'])
    await other.output(['rm', '/srv/again.tar'])
    const shown = JSON.parse(
      await other.output(['edgehostctl', 'content', 'inspect', '/srv/bundle.tar', '-o', 'json']),
    )
    ;({ indexDigest, sizeBytes: totalBytes } = shown as { indexDigest: string; sizeBytes: number })
    expect(totalBytes).toBeGreaterThan(195 * MB)
    const kinds = (shown.entries as { kind: string }[]).map(({ kind }) => kind).sort()
    expect(kinds).toEqual(['chart', 'definition', 'file', 'image', 'image'])
  })
})

describe('an upload over the network', () => {
  /** Bytes that the host holds of uploads. */
  const heldBytes = async () =>
    Number((await host.output(['du', '-sb', `${content}/uploads`])).split('\t')[0])

  it('an upload shows its progress on a terminal, and Ctrl-C ends it with what to do', async () => {
    const pane = await openPane(other, 120)
    await pane.type(`edgehostctl --host ${bridge.addresses[0]!} content upload /srv/bundle.tar`, 'Enter')
    // Of 60 MB that are sent, the buffers of four connections may still hold a part.
    await pane.until(/ MB of 19\d(\.\d)? MB, [3-9]\d %, .+\/s, .+ left/)
    await pane.type('', 'C-c')
    await pane.until(/same command continues the upload/)
    await pane.type('echo ended with $?', 'Enter')
    await pane.until(/^ended with 130$/m)
    await pane.close()
    await eventually(async () => expect(await heldBytes()).toBeGreaterThan(10 * MB))
  })

  it('the same command continues where the upload was, also after a kill -9 of the daemon', async () => {
    const before = await heldBytes()
    const running = uploaded('/srv/bundle.tar')
    await eventually(async () => expect(await heldBytes()).toBeGreaterThan(120 * MB))
    const pid = await host.mainPid()
    await host.output(['systemctl', 'kill', '--kill-whom=main', '--signal=KILL', 'edgehostd'])
    await eventually(async () => expect([0, pid]).not.toContain(await host.mainPid()))
    const sent = await running
    expect(sent.isNew).toBe(true)
    // What was on its way at the kill is sent twice: the buffers of four connections.
    expect(sent.sentBytes).toBeLessThan(totalBytes - before + 60 * MB)
    uid = sent.uid
  })

  it('nothing is sent of a bundle that is there', async () => {
    expect(await uploaded('/srv/bundle.tar')).toMatchObject({ uid, isNew: false, sentBytes: 0 })
  })

  it('every blob is on the mounted disk, whole, and belongs to root alone', async () => {
    const files = await host.output(['find', content, '-type', 'f', '-printf', '%m %U:%G\\n'])
    expect([...new Set(files.trim().split('\n'))]).toEqual(['600 0:0'])
    expect(await host.output(['ls', `${content}/uploads`])).toBe('')
    expect(readFileSync(join(disk, 'bundles', `${uid}.jsonl`), 'utf8')).toContain(indexDigest)
    expect(await differing()).toBe('')
  })
})

describe('what a host shows of its content', () => {
  it('viewers see the bundle, its entries, the usage and the last upload', async () => {
    const list = await get(`${api}/bundles`, viewerToken)
    expect(list.json.items).toMatchObject([
      { uid, indexDigest, images: 2, isForeign: false, damagedBlobs: 0 },
    ])
    expect((await get(`${api}/bundles/${uid}`, viewerToken)).json).toMatchObject({
      ...{ uid, name: 'bundle', architectures: ['amd64'], isPinned: false },
      // index.json is a blob of the host too.
      sizeBytes: totalBytes + readFileSync(join(disk, 'blobs/sha256', indexDigest.slice(7))).length,
    })
    const items = (await get(`${api}/bundles/${uid}/entries`, viewerToken)).json.items as Entry[]
    const busybox = items.find(({ name }) => name === 'docker.io/library/busybox')!
    expect(busybox).toMatchObject({ tag: '1.35', kind: 'image', hasTag: true })
    expect(busybox.platforms).toMatchObject([
      { architecture: 'amd64', isCarried: true },
      { architecture: 'arm64', isCarried: false },
    ])
    expect((await get(`${api}/usage`, viewerToken)).json).toMatchObject({ isComplete: true })
    const details = await get('/v1/edge-mgmt/edgehosts/current/uploaded-content/details', viewerToken)
    expect(details.json).toMatchObject({ sha256Hash: indexDigest.slice(7) })
    expect((await get(`${api}/uploads`, viewerToken)).json.items).toEqual([])
  })

  it('edgehostctl shows the same over the network', async () => {
    const shown = async (...args: readonly string[]) => (await there('content', ...args)).stdout
    expect(await shown('list')).toMatch(new RegExp(`^UID .*\\n${uid} +bundle .* 197 MB +2 +amd64`))
    expect(await shown('show', uid)).toMatch(/docker\.io\/library\/busybox:1\.35 .*amd64 .*arm64/)
    expect(await shown('usage')).toContain('197 MB')
    expect(JSON.parse(await shown('list', '-o', 'json')).items).toMatchObject([{ uid }])
  })

  it('the definition inside is in the slot embedded', async () => {
    const details = await get('/v1/edge-mgmt/clusters/archive/embedded/details')
    const bytes = readFileSync(onOther('/srv/definition.tgz'))
    expect(details.json).toMatchObject({ sizeBytes: bytes.length, sha256: sha256(bytes), problems: [] })
  })
})

describe('a bundle as one file', () => {
  let second: string

  it('a file is accepted from an administrator alone, once, and is shown as the last upload', async () => {
    await other.write('/srv/more', noise(3 * MB))
    await other.sh(
      'cd /srv; edgehostctl content build --file more=/srv/more notes=/srv/notes --output two.tar.zst',
    )
    const form = [`uploadFile=@${onOther('/srv/two.tar.zst')}`]
    const before = Number((await host.output(['du', '-sb', content])).split('\t')[0])
    expect(await host.http('POST', filePath, { token: viewerToken, form })).toMatchObject({ status: 403 })
    const first = await host.http('POST', filePath, { token, form })
    expect(first, first.text).toMatchObject({ status: 201 })
    second = first.json.uid as string
    expect(first.json.uploadPath).toContain(second)
    expect(await host.http('POST', filePath, { token, form })).toMatchObject({
      status: 200,
      json: { uid: second },
    })
    // The larger file is in the first bundle already.
    const added = Number((await host.output(['du', '-sb', content])).split('\t')[0]) - before
    expect(added).toBeLessThan(3.2 * MB)
    const details = await get('/v1/edge-mgmt/edgehosts/current/uploaded-content/details')
    expect(details.json).toMatchObject({
      fileName: 'two.tar.zst',
      sha256Hash: sha256(readFileSync(onOther('/srv/two.tar.zst'))),
    })
  })

  it('a bundle is deleted with what no other bundle has, not by a viewer, and not while it is pinned', async () => {
    const at = `${api}/bundles/${second}`
    expect(await host.http('DELETE', at, { token: viewerToken })).toMatchObject({ status: 403 })
    const { items } = (await get(`${at}/entries`)).json
    await host.write(`${content}/pins.json`, JSON.stringify({ 'cluster plant': [items[0].digest] }), 0o600)
    await host.output(['systemctl', 'restart', 'edgehostd'])
    const refused = await host.http('DELETE', at, { token })
    expect(refused).toMatchObject({ status: 409, json: { code: 'ContentInUse' } })
    expect(refused.text).toContain('cluster plant')
    await host.output(['rm', `${content}/pins.json`])
    await host.output(['systemctl', 'restart', 'edgehostd'])

    const blobs = () => host.output(['ls', `${content}/blobs/sha256`])
    const before = await blobs()
    expect(await host.http('DELETE', `${at}?dryRun=true`, { token })).toMatchObject({ status: 200 })
    expect(await blobs()).toBe(before)
    expect(await host.http('DELETE', at, { token })).toMatchObject({ status: 204 })
    const notes = sha256(readFileSync(onOther('/srv/notes')))
    const more = sha256(readFileSync(onOther('/srv/more')))
    expect(before).toContain(more)
    const after = await blobs()
    expect([after.includes(more), after.includes(notes)]).toEqual([false, true])
  })
})

describe('a host with a signing key', () => {
  it('a bundle is accepted with the signature of its index.json or of its file, and none without', async () => {
    const key = join(host.folder, 'signing.key')
    await output('openssl', [
      'genpkey',
      '-algorithm',
      'EC',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-out',
      key,
    ])
    const pem = await output('openssl', ['pkey', '-in', key, '-pubout'])
    const value = Buffer.from(pem).toString('base64')
    await configure(`  signing: {publicKey: {base64EncodedValue: "${value}", description: Plant 7}}\n`)
    const layout = createLayout()
    layout.list(image(layout, 'amd64', noise(MB)))
    writeLayoutFolder(onOther('/srv/signed'), layout)

    const unsigned = await there('content', 'upload', '/srv/signed')
    expect(unsigned).toMatchObject({ exitCode: 1 })
    expect(unsigned.stderr).toContain('SignatureMissing')
    const tar = join(host.folder, 'signed.tar')
    await output('tar', ['-C', onOther('/srv/signed'), '-cf', tar, 'blobs', 'index.json', 'oci-layout'])
    expect(await host.http('POST', filePath, { token, form: [`uploadFile=@${tar}`] })).toMatchObject({
      json: { code: 'SignatureMissing' },
    })
    expect((await get(`${api}/bundles`)).json.items).toHaveLength(1)

    const sign = (file: string, to: string) =>
      output('openssl', ['dgst', '-sha256', '-sign', key, '-out', to, file])
    await sign(onOther('/srv/signed/index.json'), onOther('/srv/index.sig'))
    expect(await uploaded('/srv/signed', '--signature', '/srv/index.sig')).toMatchObject({ isNew: true })
    await sign(tar, `${tar}.sig`)
    const form = [`uploadFile=@${tar}`, `signature=@${tar}.sig`]
    expect(await host.http('POST', filePath, { token, form })).toMatchObject({ status: 200 })
    await configure()
  })
})

describe('the disk of the content', () => {
  it('a host does not start while its disk is not mounted, and says what to do', async () => {
    await host.write(
      '/etc/edgehostd/config.d/elsewhere.yaml',
      'content: {directory: /var/lib/edgehostd/elsewhere}\n',
    )
    await host.run(['systemctl', 'restart', 'edgehostd'])
    await eventually(async () => expect(await host.property('ExecMainStatus')).toBe('66'))
    const said = (await host.log()).map(({ msg }) => msg).join('\n')
    expect(said).toMatch(/no file system is mounted at \/var\/lib\/edgehostd\/elsewhere; see findmnt/)
    await host.output(['rm', '/etc/edgehostd/config.d/elsewhere.yaml'])
    await host.output(['systemctl', 'restart', 'edgehostd'])
    expect((await get(`${api}/bundles`)).json.items).toHaveLength(2)
  })

  it('after a reboot all content is there, and whole', async () => {
    const before = (await get(`${api}/bundles`)).json
    const blobs = await host.output(['ls', `${content}/blobs/sha256`])
    await host.reboot()
    await eventually(async () => expect(await host.property('ActiveState')).toBe('active'))
    token = (await host.openSession('chief', right)).token
    expect((await get(`${api}/bundles`)).json).toEqual(before)
    expect(await host.output(['ls', `${content}/blobs/sha256`])).toBe(blobs)
    expect(await differing()).toBe('')
  })
})

it('the journal warns only of the mount that was missing', async () => {
  const warnings = (await host.log()).filter(({ priority }) => priority <= 4)
  expect(warnings.length).toBeGreaterThan(0)
  for (const { msg } of warnings)
    expect(msg).toMatch(/no file system is mounted|^correct the configuration, check it with/)
})
