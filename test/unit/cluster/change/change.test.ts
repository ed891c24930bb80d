import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { describeChange } from '../../../../src/base/described-change.ts'
import { comparedConfiguration, etagOf } from '../../../../src/cluster/desired/revision-document.ts'
import type { ClusterConfiguration } from '../../../../src/cluster/schemas.ts'
import {
  by,
  createChangingCluster,
  posted,
  secret,
  signal,
  spec,
  withReplicas,
} from '../../../support/changing-cluster.ts'
import { wantedPack } from '../../../support/cluster-parts.ts'

/** The error of a write that has to be refused. */
const refused = (written: Promise<unknown>): Promise<Error> =>
  written.then(
    () => {
      throw new Error('it was accepted')
    },
    (error: unknown) => error as Error,
  )

describe('a write', () => {
  it('a write becomes a revision that waits, with the stored secret, the own copy of the definition and the present node', async () => {
    const world = createChangingCluster()
    const { write, revisions, requests, done, events, shown, database } = world
    const changed = await write(withReplicas('3'))
    expect(changed).toMatchObject({ revision: 2 })
    expect(requests[0]).toMatchObject({
      generation: 2,
      node: { name: 'node-1', address: '192.0.2.7', endpoint: '192.0.2.7' },
      variables: [
        { name: 'replicas', value: '3' },
        { name: 'password', value: secret },
      ],
    })
    expect(requests[0]?.source?.file).toMatch(/\/1\/definition\.spc$/)
    expect(revisions.newest()).toMatchObject({ generation: 2, by, origin: 'update', outcome: 'waiting' })
    expect(revisions.newest()?.plain?.spec?.profileVariables?.[1]).toEqual({
      name: 'password',
      value: secret,
    })
    expect(shown().spec?.profileVariables?.[1]?.value).toBe('********')
    expect(changed.etag).toBe(etagOf(shown()))
    expect(done).toEqual(['pin sha256:2', 'renew sha256:1,sha256:2', 'accepted'])
    expect(events).toEqual([expect.stringMatching(/^UpdateAccepted: revision 2 of ada: factory 1\.0\.0/)])
    const rows = database.sql.prepare('SELECT posted, sealed FROM cluster_revision').all()
    expect(rows.some((row) => String(row.posted).includes(secret))).toBe(false)
    expect(rows.some(({ sealed }) => Buffer.from(sealed as Uint8Array).includes(secret))).toBe(false)
  })

  it('the trail compares two revisions by what they are, and says a secret is another one, never which', async () => {
    const { write, revisions, store, shown } = createChangingCluster()
    const compared = () => comparedConfiguration(store.current()!, revisions.newest()!)
    const before = compared()
    const name = 'password'
    const profileVariables = [
      { name: 'replicas', value: '3' },
      { name, value: 'marlin-1108' },
    ]
    await write(() =>
      spec({ ...shown(), metadata: { ...shown().metadata, labels: {} } }, { profileVariables }),
    )
    const said = describeChange(before, compared())
    expect(said).toBe(
      'labels.site: press-hall -> none; variables.password.value: ******** -> another ********; variables.replicas.value: 2 -> 3',
    )
  })

  it('a write that changes nothing makes no revision and looks at nothing: as GET gave it, or with the secret itself', async () => {
    const { write, revisions, requests, done } = createChangingCluster()
    for (const same of [(document: ClusterConfiguration) => document, () => posted, withReplicas('2')])
      expect(await write(same)).toMatchObject({ revision: undefined })
    expect([requests, done, revisions.list().length]).toEqual([[], [], 1])
  })

  it('only the ETag of the present state, or *, lets a guarded write through', async () => {
    const { write, shown } = createChangingCluster()
    const ifMatch = etagOf(shown())
    for (const other of ['"other"', `W/${ifMatch}`, ''])
      await expect(write(withReplicas('3'), { ifMatch: other })).rejects.toMatchObject({
        code: 'PreconditionFailed',
      })
    expect(await write(withReplicas('3'), { ifMatch: `"other", ${ifMatch}` })).toMatchObject({ revision: 2 })
    // The second of two operators learns who came between, and when.
    const second = await refused(write(withReplicas('4'), { ifMatch }))
    expect(second).toMatchObject({ code: 'PreconditionFailed' })
    expect(second.message).toMatch(
      /^the cluster was changed since it was read: it has revision 2, which is not applied yet, accepted at \d{4}-\S+Z by \w+; GET \/v1\/edge-mgmt\/cluster, and change that$/,
    )
    expect(await write(withReplicas('4'), { ifMatch: '*' })).toMatchObject({ revision: 3 })
  })

  it('of two guarded writes at the same time the second is refused', async () => {
    const { write, shown, hold } = createChangingCluster()
    const gate = Promise.withResolvers<undefined>()
    hold.gate = gate.promise
    const ifMatch = etagOf(shown())
    const first = write(withReplicas('3'), { ifMatch })
    const second = expect(write(withReplicas('4'), { ifMatch })).rejects.toMatchObject({
      code: 'PreconditionFailed',
    })
    gate.resolve(undefined)
    expect(await first).toMatchObject({ revision: 2 })
    await second
  })

  it('a later write takes the place of one that waits', async () => {
    const { write, revisions } = createChangingCluster()
    await write(withReplicas('3'))
    await write(withReplicas('4'))
    expect(revisions.list().map(({ generation, outcome }) => [generation, outcome])).toEqual([
      [3, 'waiting'],
      [2, 'superseded'],
      [1, 'good'],
    ])
  })

  it('a failed revision is not what GET shows, and the same write again is a new try', async () => {
    const { write, shown, activate } = createChangingCluster()
    await write(withReplicas('3'))
    activate('failed')
    expect(shown().spec?.profileVariables?.[0]?.value).toBe('2')
    expect(await write(withReplicas('3'))).toMatchObject({ revision: 3 })
  })

  it('nothing can be written to another name, while the cluster is deleted, or without one', async () => {
    const { write, store } = createChangingCluster()
    await expect(write(withReplicas('3'), { name: 'other' })).rejects.toMatchObject({ code: 'NotFound' })
    expect(await write(withReplicas('3'), { name: 'edge-1' })).toMatchObject({ revision: 2 })
    store.requestDeletion(1)
    await expect(write(withReplicas('4'))).rejects.toMatchObject({ code: 'ClusterDeleting' })
    store.remove()
    await expect(write(withReplicas('4'))).rejects.toMatchObject({ code: 'NotFound' })
  })

  it('a deletion that is asked for while the checks run wins, and leaves no files of the write', async () => {
    const { write, store, hold, generations, revisions } = createChangingCluster()
    const gate = Promise.withResolvers<undefined>()
    hold.gate = gate.promise
    const refused = expect(write(withReplicas('3'))).rejects.toMatchObject({ code: 'ClusterDeleting' })
    store.requestDeletion(1)
    gate.resolve(undefined)
    await refused
    expect([generations(), revisions.list().length]).toEqual([['1'], 1])
  })

  it('what the host begins while the checks run refuses the write, and leaves no files of it', async () => {
    const { write, hold, generations, revisions } = createChangingCluster()
    const gate = Promise.withResolvers<undefined>()
    hold.gate = gate.promise
    const busy = new Error('a change of the network')
    const refused = expect(write(withReplicas('3'))).rejects.toThrow(busy)
    await new Promise(setImmediate)
    hold.busy = busy
    gate.resolve(undefined)
    await refused
    expect([generations(), revisions.list().length]).toEqual([['1'], 1])
    // A write that changes nothing has nothing to wait for.
    await expect(write((document) => document)).resolves.toMatchObject({ revision: undefined })
  })

  it('where the database cannot be written nothing is kept, and the refusal says so', async () => {
    const { write, file, generations, done } = createChangingCluster()
    const other = new DatabaseSync(file)
    onTestFinished(() => other.close())
    other.exec('BEGIN IMMEDIATE')
    await expect(write(withReplicas('3'))).rejects.toMatchObject({ code: 'InsufficientStorage' })
    expect(generations()).toEqual(['1'])
    expect(done.at(-1)).toBe('renew sha256:1')
    other.exec('ROLLBACK')
  })

  it('a failed pre-flight refuses the write with all problems, and the cluster stays as it is', async () => {
    const { write, found, revisions, generations } = createChangingCluster()
    found.problems.push({ code: 'ImageMissing', severity: 'error', message: `no image ${secret}` })
    await expect(write(withReplicas('3'))).rejects.toMatchObject({
      code: 'PreflightFailed',
      message: 'the cluster cannot be changed: no image ********',
      details: { problems: [{ code: 'ImageMissing', message: 'no image ********' }] },
    })
    expect([generations(), revisions.list().length]).toEqual([['1'], 1])
  })

  it('a dry run shows neither the secrets that are stored nor those that are given, whatever is named after them', async () => {
    const given = 'herring-4711'
    const named = (value: string) => [
      {
        ...wantedPack('web'),
        digest: value,
        namespaces: [{ name: `space-${value}`, labels: {}, annotations: {} }],
      },
      { ...wantedPack(value), digest: value },
    ]
    const { change, next, found } = createChangingCluster({ packs: named(secret) })
    next.packs = named(given)
    found.problems.push({
      ...{ code: 'ImageMissing', severity: 'warning', message: `it was ${secret} and is ${given}` },
    })
    const edit = async (document: ClusterConfiguration) =>
      spec(document, { profileVariables: [{ name: 'password', value: given }] })
    const dryRun = await change.tryWrite({ ifMatch: undefined, by, edit }, signal)
    expect(dryRun.problems[0]?.message).toBe('it was ******** and is ********')
    expect(dryRun.diff?.packs.map(({ name, change: what }) => [name, what])).toEqual([
      ['web', 'changed'],
      ['********', 'added'],
      ['********', 'removed'],
    ])
    expect(dryRun.plan.map(({ key }) => key)).toContain('p1/******** apply')
    expect(JSON.stringify(dryRun)).not.toMatch(new RegExp(`${given}|${secret}`))
  })

  it('a mask without a stored value is refused with its place', async () => {
    const { write } = createChangingCluster()
    await expect(
      write((document) => spec(document, { profileVariables: [{ name: 'token', value: '********' }] })),
    ).rejects.toMatchObject({ code: 'BadRequest', details: { field: 'spec.profileVariables[0].value' } })
  })
})

describe('what a cluster keeps', () => {
  const cloud = (config: object) => (document: ClusterConfiguration) =>
    spec(document, { cloudConfig: { spec: config } })
  it.each([
    ['metadata.name', (each: ClusterConfiguration) => ({ ...each, metadata: { name: 'other' } })],
    ['metadata.id', (each: ClusterConfiguration) => ({ ...each, metadata: { id: 'other' } })],
    [
      'metadata.creationTimestamp',
      (each: ClusterConfiguration) => ({ ...each, metadata: { creationTimestamp: '2020-01-01T00:00:00Z' } }),
    ],
    ['status', (each: ClusterConfiguration) => ({ ...each, status: { phase: 'Failed' } })],
    [
      'spec.cloudConfig.spec.clusterConfig.controlPlaneEndpoint.host',
      cloud({ clusterConfig: { controlPlaneEndpoint: { host: '192.0.2.99' } } }),
    ],
    [
      'spec.cloudConfig.spec.machinePoolConfig[0].hosts[0].hostName',
      cloud({ machinePoolConfig: [{ hosts: [{ hostName: 'other' }] }] }),
    ],
    [
      'spec.cloudConfig.spec.machinePoolConfig[0].name',
      cloud({ machinePoolConfig: [{ name: 'other', hosts: [] }] }),
    ],
  ])('a change of %s is refused with its path', async (field, edit) => {
    const { write, requests } = createChangingCluster()
    await expect(write(edit)).rejects.toMatchObject({ code: 'CannotChange', details: { field } })
    expect(requests).toEqual([])
  })

  it('an overlay is refused with its path', async () => {
    const { write } = createChangingCluster()
    const overlay = cloud({ clusterConfig: { overlayNetworkConfiguration: { enable: true } } })
    await expect(write(overlay)).rejects.toMatchObject({
      details: { field: 'spec.cloudConfig.spec.clusterConfig.overlayNetworkConfiguration' },
    })
  })

  const config = (part: string) => `clusterConfiguration:\n  ${part}\n`
  it.each([
    [{ config: config('networking: {podSubnet: 10.9.0.0/16}') }, 'networking.podSubnet'],
    [{ config: config('networking: {serviceSubnet: 10.9.0.0/16}') }, 'networking.serviceSubnet'],
    [{ config: config('etcd: {local: {dataDir: /data/etcd}}') }, 'etcd.local.dataDir'],
    [{ config: config('certificatesDir: /srv/pki') }, 'clusterConfiguration.certificatesDir'],
    [
      { config: 'initConfiguration: {localAPIEndpoint: {bindPort: 7443}}' },
      'initConfiguration.localAPIEndpoint.bindPort',
    ],
    [{ pack: 'edge-other' }, 'edge-other'],
  ])('a definition with %j is refused by the pre-flight', async (kubernetes, named) => {
    const { write, next } = createChangingCluster()
    next.kubernetes = { ...next.kubernetes, ...kubernetes }
    await expect(write(withReplicas('3'))).rejects.toMatchObject({
      code: 'PreflightFailed',
      details: { problems: [{ code: 'CannotChange', message: expect.stringContaining(named) }] },
    })
  })

  it.each([
    ['1.33.1', 'take a definition with 1.34.4 or a newer one'],
    ['1.36.0', 'take a definition with 1.35 first'],
    ['2.0.0', 'take a definition with 1.35 first'],
  ])('a definition with Kubernetes %s is refused', async (version, named) => {
    const { write, next } = createChangingCluster()
    next.kubernetes = { ...next.kubernetes, version }
    await expect(write(withReplicas('3'))).rejects.toMatchObject({
      code: 'PreflightFailed',
      details: { problems: [{ code: 'VersionSkew', message: expect.stringContaining(named) }] },
    })
  })

  it('the network that kubeadm takes by itself may be named', async () => {
    const { write, next } = createChangingCluster()
    next.kubernetes = { ...next.kubernetes, config: config('networking: {serviceSubnet: 10.96.0.0/12}') }
    expect(await write(withReplicas('3'))).toMatchObject({ revision: 2 })
  })
})
