import { expect, it } from 'vitest'
import { type PreparedVariable, readDesired } from '../../../../src/cluster/desired/prepared.ts'
import {
  createChangingCluster,
  posted,
  rollBack,
  spec,
  withReplicas,
} from '../../../support/changing-cluster.ts'

const token = 'token-of-the-new-one'

/** A cluster whose second revision, with Kubernetes 1.34.4, has failed, and whose packs went back. */
async function wentBack(options: { copiedAt?: number } = {}) {
  const world = createChangingCluster({ kubernetes: { version: '1.33.13', config: 'old' }, ...options })
  const { next, found, write } = world
  next.kubernetes = { pack: 'edge-k8s', version: '1.34.4', config: 'new', stages: [] }
  const variable: PreparedVariable = { profileUid: 'p2', name: 'token', value: token, isSensitive: true }
  found.variables.push(variable)
  await write((document) => spec(document, { archiveUploadPath: '/definitions/2' }))
  found.variables.length = 0
  await world.goBackWithKubernetes()
  // Definitions are prepared with their own Kubernetes again, unless another one is asked for.
  next.kubernetes = { pack: 'edge-k8s', version: '1.33.13', config: 'old', stages: [] }
  return world
}

it('GET shows the configuration of the good revision, and both their content and secrets are kept', async () => {
  const { store, shown, revisions, upkeep, done, generations } = await wentBack()
  const record = store.current()!
  expect(shown().spec?.archiveUploadPath).toBe('/definitions/1')
  expect(record).toMatchObject({
    ...{ generation: 3, posted: revisions.find(1)?.posted },
    summary: { kubernetes: { version: '1.34.4' }, kubernetesOf: 2, content: ['sha256:1', 'sha256:2'] },
  })
  expect(revisions.find(3)).toMatchObject({ by: '', origin: 'goingBack', plain: posted })
  expect(record.sensitive).toContain(token)
  await upkeep.run()
  expect(done.at(-1)).toBe('renew sha256:1,sha256:2')
  expect(generations()).toEqual(['1', '2', '3'])
})

it('a write that keeps the definition keeps Kubernetes, again and again, and its secrets stay masked', async () => {
  const { write, activate, requests, revisions, store } = await wentBack()
  for (const [generation, replicas] of [
    [4, '3'],
    [5, '4'],
  ] as const) {
    expect(await write(withReplicas(replicas))).toMatchObject({ revision: generation })
    expect(requests.at(-1)).toMatchObject({
      kubernetes: { version: '1.34.4', config: 'new' },
      source: { file: expect.stringMatching(new RegExp(`/${generation - 1}/definition.spc$`)) },
    })
    activate()
    expect(store.current()?.summary).toMatchObject({ kubernetes: { version: '1.34.4' }, kubernetesOf: 2 })
    expect(revisions.find(generation)?.sensitive).toContain(token)
  }
  expect((await readDesired(store.current()!)).kubernetes.config).toBe('new')
})

it('another definition brings its own Kubernetes, and is compared with the one that runs', async () => {
  const { write, next, requests, revisions } = await wentBack()
  const withDefinition = (path: string) => write((document) => spec(document, { archiveUploadPath: path }))
  await expect(withDefinition('/definitions/old')).rejects.toMatchObject({
    code: 'PreflightFailed',
    details: {
      problems: [{ code: 'VersionSkew', message: expect.stringContaining('1.34.4 cannot become 1.33.13') }],
    },
  })
  next.kubernetes = { pack: 'edge-k8s', version: '1.35.0', config: 'newer', stages: [] }
  expect(await withDefinition('/definitions/4')).toMatchObject({ revision: 4 })
  expect(requests.at(-1)).not.toHaveProperty('kubernetes')
  expect(revisions.find(4)?.summary).toMatchObject({ kubernetes: { version: '1.35.0' } })
  expect(revisions.find(4)?.summary).not.toHaveProperty('kubernetesOf')
})

it('a rollback to the revision of before would still discard changes, and to the way back it keeps its Kubernetes', async () => {
  const world = await wentBack({ copiedAt: Date.parse('2026-01-31T09:52:41.000Z') })
  for (const revision of [1, undefined])
    await expect(rollBack(world, revision)).rejects.toMatchObject({
      code: 'WouldDiscardChanges',
      details: { copyTimestamp: '2026-01-31T09:52:41.000Z' },
    })
  expect(await rollBack(world, 1, true)).toMatchObject({ revision: 4 })
  expect(world.requests.at(-1)).not.toHaveProperty('kubernetes')
  expect(await rollBack(world, 3)).toMatchObject({ revision: 5 })
  expect(world.requests.at(-1)).toMatchObject({ kubernetes: { version: '1.34.4' } })
})
