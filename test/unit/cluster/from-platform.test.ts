import { expect, it } from 'vitest'
import type { SystemEntry } from '../../../src/audit/own-entries.ts'
import type { Creation } from '../../../src/cluster/desired/creation.ts'
import { createFromPlatform, type PlatformOrder } from '../../../src/cluster/api/platform.ts'
import { type ClusterConfiguration, ClusterConfiguration as Schema } from '../../../src/cluster/schemas.ts'
import { AppError } from '../../../src/errors/app-error.ts'
import { generalErrors } from '../../../src/errors/codes.ts'
import { createBodyCheck } from '../../../src/api/compilers.ts'
import {
  createChangingCluster,
  posted,
  secret,
  signal,
  withReplicas,
} from '../../support/changing-cluster.ts'
import { captureLog } from '../../support/https-server.ts'

const sameSum = 'a'.repeat(64)

function createWorld() {
  const cluster = createChangingCluster()
  const { store, revisions, change } = cluster
  const entries: SystemEntry[] = []
  const taken: string[] = []
  const created: { posted: ClusterConfiguration; uid: string | undefined; number: number | undefined }[] = []
  const next: { refusal?: Error } = {}
  const fromPlatform = createFromPlatform({
    ...{ store, revisions, change, log: captureLog().log, problemOf: createBodyCheck(Schema) },
    creation: {
      create: async (
        wanted: ClusterConfiguration,
        { uid, platformNumber }: Parameters<Creation['create']>[1],
      ) => {
        if (next.refusal) throw next.refusal
        created.push({ posted: wanted, uid, number: platformNumber })
        return { uid: uid ?? '', name: 'edge-1', isRepeated: false }
      },
    },
    remove: () => store.requestDeletion(cluster.clock.now()),
    definitions: {
      takeFromPlatform: async ({ sha256 }) => {
        if (next.refusal) throw next.refusal
        taken.push(sha256)
        return '/definitions/taken'
      },
      dropFromPlatform: async () => void taken.push('dropped'),
    },
    record: (entry) => entries.push(entry),
  })
  const uid = store.current()!.uid
  const order = (number: number, replicas: string, sha256 = sameSum): PlatformOrder => ({
    ...{ uid, name: 'edge-1', number, isDeleted: false },
    configuration: {
      metadata: posted.metadata,
      spec: {
        profileVariables: [
          { name: 'replicas', value: replicas },
          { name: 'password', value: secret },
        ],
      },
    },
    definition: { sha256, sizeBytes: 3, fileName: 'definition.tar.zst', open: () => pieces() },
  })
  return { ...cluster, fromPlatform, order, uid, entries, taken, created, next }
}

async function* pieces() {
  yield Buffer.from('abc')
}

it('a change becomes a revision with its number, from the copy of the definition that the cluster has', async () => {
  const { fromPlatform, order, requests, revisions, taken, entries } = createWorld()
  expect(await fromPlatform.apply(order(2, '3'), signal)).toEqual({ kind: 'applied', revision: 2 })
  expect(revisions.newest()).toMatchObject({ generation: 2, by: 'platform', platformNumber: 2 })
  expect(requests.at(-1)?.source?.definition.sha256).toBe(sameSum)
  expect(taken).toEqual([])
  expect(entries).toMatchObject([
    { action: 'update', kind: 'cluster', message: expect.stringContaining('number 2') as string },
  ])
  expect(entries[0]?.message).toContain('variables.replicas.value: 2 -> 3')
  expect(fromPlatform.current()?.newest).toMatchObject({ revision: 2, platformNumber: 2, outcome: 'waiting' })
})

it('another definition is taken from the platform first', async () => {
  const { fromPlatform, order, requests, taken } = createWorld()
  expect(await fromPlatform.apply(order(2, '3', 'b'.repeat(64)), signal)).toMatchObject({ kind: 'applied' })
  expect(taken).toEqual(['b'.repeat(64)])
  expect(requests.at(-1)?.archiveUploadPath).toBe('/definitions/taken')
})

it('the same order is not accepted twice, also where its revision has failed since', async () => {
  const { fromPlatform, order, revisions, activate } = createWorld()
  await fromPlatform.apply(order(2, '3'), signal)
  activate('failed')
  expect(await fromPlatform.apply(order(2, '3'), signal)).toEqual({ kind: 'applied', revision: 2 })
  expect(revisions.newest()?.generation).toBe(2)
  expect(fromPlatform.current()?.newest).toMatchObject({ outcome: 'failed' })
  // A higher number tries it again.
  expect(await fromPlatform.apply(order(3, '3'), signal)).toEqual({ kind: 'applied', revision: 3 })
})

it('what the host is made as is told beside the newest revision, also when it has gone back', async () => {
  const { fromPlatform, order, activate } = createWorld()
  await fromPlatform.apply(order(2, '3'), signal)
  activate('failed')
  expect(fromPlatform.current()).toMatchObject({
    newest: { revision: 2, outcome: 'failed' },
    active: { revision: 1 },
  })
  expect(await fromPlatform.apply(order(3, '2'), signal)).toEqual({ kind: 'applied', revision: 1 })
})

it('the record of a change that waited for another one has only its own', async () => {
  const { fromPlatform, order, write, hold, entries } = createWorld()
  const gate = Promise.withResolvers<undefined>()
  hold.gate = gate.promise
  const local = write(withReplicas('3'))
  const ofPlatform = fromPlatform.apply(order(2, '4'), signal)
  gate.resolve(undefined)
  await local
  expect(await ofPlatform).toEqual({ kind: 'applied', revision: 3 })
  expect(entries[0]?.message).toContain('variables.replicas.value: 3 -> 4')
})

it('where nothing differs no revision is made', async () => {
  const { fromPlatform, order, revisions, entries } = createWorld()
  expect(await fromPlatform.apply(order(5, '2'), signal)).toEqual({ kind: 'applied', revision: 1 })
  expect(revisions.newest()?.generation).toBe(1)
  expect(entries).toEqual([])
})

it('a local change is told from one of the platform', async () => {
  const { fromPlatform, write } = createWorld()
  await write(withReplicas('9'))
  expect(fromPlatform.current()?.newest).toMatchObject({ revision: 2, platformNumber: null })
})

it('missing content is told apart from what an operator has to correct; nothing is changed', async () => {
  const { fromPlatform, order, found, revisions } = createWorld()
  const problem = (code: 'ImageMissing' | 'PortInUse', message: string) =>
    ({ code, severity: 'error', message }) as (typeof found.problems)[number]
  found.problems = [problem('ImageMissing', `image web:1 of ${secret} is missing`)]
  expect(await fromPlatform.apply(order(2, '3'), signal)).toEqual({
    ...{ kind: 'contentMissing', message: 'image web:1 of ******** is missing' },
  })
  found.problems.push(problem('PortInUse', 'port 6443 is in use'))
  expect(await fromPlatform.apply(order(2, '3'), signal)).toMatchObject({
    ...{ kind: 'refused', message: expect.stringContaining('port 6443') as string },
  })
  expect(revisions.newest()?.generation).toBe(1)
})

it('a cluster that the platform did not make is left alone, also by a deletion', async () => {
  const { fromPlatform, order, store, taken } = createWorld()
  const uid = '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44'
  expect(await fromPlatform.apply({ ...order(7, '3'), uid }, signal)).toMatchObject({ kind: 'clusterExists' })
  const deletion = { uid, name: 'edge-1', number: 8, isDeleted: true } as const
  expect(await fromPlatform.apply(deletion, signal)).toEqual({ kind: 'deleted' })
  expect(store.current()?.deleteRequestedAt).toBeNull()
  expect(taken).toEqual(['dropped'])
})

it('a deletion continues until the cluster is gone', async () => {
  const { fromPlatform, uid, store, revisions, entries } = createWorld()
  const deletion = { uid, name: 'edge-1', number: 4, isDeleted: true } as const
  expect(await fromPlatform.apply(deletion, signal)).toEqual({ kind: 'deleting' })
  expect(await fromPlatform.apply(deletion, signal)).toEqual({ kind: 'deleting' })
  expect(entries).toMatchObject([{ action: 'delete' }])
  store.remove()
  revisions.clear()
  expect(await fromPlatform.apply(deletion, signal)).toEqual({ kind: 'deleted' })
})

it('without a cluster one is created, with the uid of the platform', async () => {
  const { fromPlatform, order, uid, store, revisions, created } = createWorld()
  store.remove()
  revisions.clear()
  expect(await fromPlatform.apply(order(3, '3'), signal)).toMatchObject({ kind: 'applied' })
  expect(created).toMatchObject([
    {
      uid,
      number: 3,
      posted: { metadata: { name: 'edge-1' }, spec: { archiveUploadPath: '/definitions/taken' } },
    },
  ])
})

it('a full disk says nothing about what is wanted, and a damaged archive does', async () => {
  const { fromPlatform, order, next } = createWorld()
  next.refusal = new AppError(generalErrors.StorageFull, 'the disk is full')
  expect(await fromPlatform.apply(order(2, '3', 'c'.repeat(64)), signal)).toMatchObject({ kind: 'later' })
  next.refusal = new AppError(generalErrors.BadRequest, 'the archive is damaged')
  expect(await fromPlatform.apply(order(2, '3', 'c'.repeat(64)), signal)).toEqual({
    ...{ kind: 'refused', message: 'the archive is damaged' },
  })
})

it('a configuration of another form, or of another name, is refused', async () => {
  const { fromPlatform, order } = createWorld()
  for (const configuration of [[], { metadata: { name: 5 } }, { metadata: { name: 'other' } }, undefined])
    expect(
      await fromPlatform.apply({ ...order(2, '3'), configuration } as PlatformOrder, signal),
    ).toMatchObject({
      kind: 'refused',
    })
})
