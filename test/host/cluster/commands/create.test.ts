import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  clusterPath,
  createChangingHost,
  next,
  sent,
  slotOf,
  upload,
} from '../../../support/changing-host.ts'
import { detailsOf, json } from '../../../support/played-cluster.ts'
import type { Answers } from '../../../support/played-ctl.ts'
import { serviceStatus } from '../../../support/test-edge.ts'

const world = createChangingHost()
const { ctl, definition, asked, writes, bodyOf, run, runOnTerminal } = world
afterAll(() => world.stop())

const slot = (name: string) => `GET /v1/edge-mgmt/clusters/archive/${name}/details`
const post = `POST ${clusterPath}`
const uid = '3f2c5e2e-93a4-4c43-8f0e-000000000001'
const uploaded = json(201, {
  uid: 'u',
  uploadPath: sent,
  message: 'definition shop 1.0.0 is in the slot overridden',
})

/** A host without a cluster, whose slots are empty. */
const empty = (more: Answers = {}): Answers => ({
  ...Object.fromEntries(['embedded', 'overridden', 'update'].map((name) => [slot(name), slotOf('')])),
  'GET /v1/edge-mgmt/edgehosts/current/status': json(200, serviceStatus('airgap')),
  [upload]: uploaded,
  [post]: json(201, { uid }),
  ...more,
})

const configurationOf = (archiveUploadPath: string, host = '', spec: object = {}) => ({
  metadata: { name: 'shop' },
  spec: {
    archiveUploadPath,
    ...spec,
    cloudConfig: {
      spec: {
        clusterConfig: { controlPlaneEndpoint: { host } },
        machinePoolConfig: [
          { name: 'control', isControlPlane: true, useControlPlaneAsWorker: true, size: 1, hosts: [{}] },
        ],
      },
    },
  },
})

describe('cluster create without a body', () => {
  it('sends the definition, and creates a cluster of this host with it', async () => {
    const ended = await run(empty(), ['create', '--name', 'shop', '--definition', definition])
    expect(ended).toMatchObject({ exitCode: 0 })
    expect(ended.stdout).toContain(uid)
    expect(ended.stderr).toMatch(
      /^Uploaded: definition shop 1\.0\.0 is in the slot overridden\. It stays there until another one\s+comes$/m,
    )
    expect(asked().find(({ url }) => url === upload)?.body).toContain('an archive')
    expect(bodyOf(post)).toEqual(configurationOf(sent))
    expect(asked().at(-1)?.headers['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('takes values, an address and a signature', async () => {
    const signature = join(ctl.home, 'shop.sig')
    writeFileSync(signature, 'signed')
    const sentSlot = slotOf(sent)
    let isSent = false
    const answers = empty({
      [slot('overridden')]: (...args) => (isSent ? sentSlot : slotOf(''))(...args),
      [upload]: (...args) => {
        isSent = true
        uploaded(...args)
      },
    })
    const ended = await run(
      answers,
      [
        ...['create', '--name=shop', '--definition', definition, '--signature', signature],
        ...['--set', 'replicas=3', '--set-file', 'password=-', '--endpoint', '192.0.2.9', '--dry-run'],
      ],
      'hunter2\n',
    )
    expect(asked().find(({ url }) => url === upload)?.body).toMatch(/name="signature"[^]*signed/)
    const profileVariables = [
      { name: 'replicas', profileUid: 'p2', value: '3' },
      { name: 'password', profileUid: 'p2', value: 'hunter2' },
    ]
    expect(bodyOf(`${post}?dryRun=true`)).toEqual(configurationOf(sent, '192.0.2.9', { profileVariables }))
    expect(ended.stdout + ended.stderr).not.toContain('hunter2')
  })

  it('a sensitive value on the command line is refused, and nothing is created', async () => {
    const ended = await run(empty({ [slot('overridden')]: slotOf(next) }), [
      ...['create', '--name=shop', '--set', 'password=hunter2'],
    ])
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ended.stderr).toMatch(/password is sensitive.*--set-file password=FILE/)
    expect(ended.stderr).not.toContain('hunter2')
    expect(writes()).toEqual([])
  })

  it.each(['update', 'overridden', 'embedded'])(
    'without --definition the one in the slot %s is taken, which is said',
    async (name) => {
      const later = { update: ['overridden', 'embedded'], overridden: ['embedded'], embedded: [] }[name] ?? []
      const others = Object.fromEntries(later.map((each) => [slot(each), slotOf('/definitions/other')]))
      const ended = await run(empty({ ...others, [slot(name)]: slotOf(next) }), ['create', '--name', 'shop'])
      expect(ended).toMatchObject({ exitCode: 0 })
      expect(ended.stderr).toMatch(
        new RegExp(
          `The definition other\\.tgz of 2026-01-30 08:00:00Z in the slot ${name} of the host is\\s+taken\\.`,
        ),
      )
      expect(bodyOf(post)).toEqual(configurationOf(next))
    },
  )

  it('where the host has no definition it says how to send one', async () => {
    const ended = await run(empty(), ['create', '--name', 'shop'])
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(
      /no definition yet; add --definition FILE, .*: edgehostctl definition upload FILE/,
    )
    expect(writes()).toEqual([])
  })

  it.each(['update', 'overridden', 'embedded'])(
    'a definition that is in the slot %s already is not sent again',
    async (name) => {
      const sha256 = createHash('sha256').update('an archive').digest('hex')
      const answers = empty({
        [slot(name)]: slotOf(next, { sha256 }),
        // The same command again, while there is a cluster.
        [`GET ${clusterPath}/details`]: json(200, detailsOf()),
      })
      const ended = await run(answers, ['create', '--name', 'shop', '--definition', definition])
      expect(ended).toMatchObject({ exitCode: 0 })
      expect(ended.stderr).toContain(`was in the slot ${name} of the host already`)
      expect(writes().map(({ url }) => url)).toEqual([post])
      expect(bodyOf(post)).toEqual(configurationOf(next))
    },
  )

  it.each([[[]], [['--dry-run']]])(
    'with %j a definition that waits on the host is replaced only after a yes',
    async (more) => {
      const answers = empty({
        [slot('overridden')]: slotOf(next),
        [post]: json(409, { code: 'ClusterExists', message: 'no' }),
      })
      const words = ['create', '--name=shop', '--definition', definition, ...more]
      const refused = await run(answers, words)
      expect(refused).toMatchObject({ exitCode: 2, stdout: '' })
      expect(refused.stderr).toMatch(/other\.tgz of .* waits in the slot overridden.*add --yes/s)
      expect(writes()).toEqual([])
      const no = await runOnTerminal(answers, words, 'n\n')
      expect(no.exitCode).toBe(1)
      expect(no.stdout).toMatch(/Replace it\? \[y\/N\] .*nothing was replaced/s)
      expect(writes()).toEqual([])
      const done = await run(answers, [...words, '--yes'])
      expect(done.stderr).toMatch(/in the place of other\.tgz/)
      expect(asked().map(({ url }) => url)).toContain(upload)
    },
  )

  it('on a host with a cluster no definition is sent, which would wait there as an update', async () => {
    const ended = await run(empty({ [`GET ${clusterPath}/details`]: json(200, detailsOf()) }), [
      ...['create', '--name=shop', '--definition', definition],
    ])
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(
      /has a cluster already, and nothing was sent; .*cluster apply --definition FILE/,
    )
    expect(writes()).toEqual([])
  })

  it('on a host that the platform manages nothing is sent', async () => {
    const connected = { 'GET /v1/edge-mgmt/edgehosts/current/status': json(200, serviceStatus('connected')) }
    const ended = await run(empty(connected), ['create', '--name=shop', '--definition', definition])
    expect(ended).toMatchObject({ exitCode: 1, stdout: '' })
    expect(ended.stderr).toMatch(/the platform makes and changes the cluster of this host/)
    expect(writes()).toEqual([])
  })

  it.each([
    [[], 'give --name NAME and --definition FILE'],
    [['--definition', 'a'], 'give --name NAME'],
    [['cluster.yaml', '--name', 'shop'], 'FILE says all of the cluster'],
    [['cluster.yaml', '--set', 'a=b'], 'FILE says all of the cluster'],
    [['cluster.yaml', '--endpoint', '192.0.2.9'], 'FILE says all of the cluster'],
    [['--name', 'Shop 1'], '--name must be 1 to 63 lower-case letters, digits and hyphens'],
    [['--name='], 'it is empty'],
    [['--name', 'shop', '--definition', '/no/where'], '--definition: /no/where cannot be read: no such file'],
    [['--name', 'shop', '--signature', 'a'], 'add --definition'],
    [['--name', 'shop', '--dry-run', '--wait'], 'leave out --wait'],
  ])('create %j is refused before anything is asked', async (args, message) => {
    const ended = await run(empty(), ['create', ...args])
    expect(ended).toMatchObject({ exitCode: 2, stdout: '', asked: [] })
    expect(ended.stderr).toContain(message)
  })
})
