import { expect, it, onTestFinished } from 'vitest'
import {
  type NewRevision,
  createRevisionStore,
  createSealed,
} from '../../../../src/cluster/desired/revisions.ts'
import { createSecrets } from '../../../../src/secrets/secrets.ts'
import { openDatabase } from '../../../support/open-database.ts'
import { wantedCluster } from '../../../support/cluster-parts.ts'
import { captureLog } from '../../../support/https-server.ts'

const { kubernetes, node } = wantedCluster()
const revision = (generation: number, more: Partial<NewRevision> = {}): NewRevision => ({
  ...{ generation, at: generation, by: 'ada', origin: 'update', folder: `/cluster/${generation}` },
  summary: {
    ...{ kubernetes, node, content: ['sha256:1'] },
    definition: { name: 'factory', version: '1.0.0', sha256: 'a'.repeat(64) },
  },
  ...{ posted: { metadata: { name: 'shop' } }, plain: { metadata: { name: 'shop', labels: { site: 'x' } } } },
  ...{ sensitive: ['swordfish'], mark: new Uint8Array([generation]) },
  ...{ outcome: 'waiting', scheduleAt: null },
  ...more,
})

function open(secret = 1) {
  const database = openDatabase(':memory:', captureLog().log)
  onTestFinished(() => database.close())
  const stored = (byte: number) =>
    createRevisionStore(database, createSealed(createSecrets(Buffer.alloc(32, byte))))
  return { database, store: stored(secret), withSecret: stored }
}

it('revisions are listed with the newest first, and one that waits is superseded by a later one', () => {
  const { store } = open()
  store.add(revision(1, { outcome: 'applying', origin: 'create' }))
  store.add(revision(2))
  store.add(revision(3, { outcome: 'held', reason: 'the variable port has no value' }))
  store.add(revision(4, { scheduleAt: 99 }))
  expect(store.list().map(({ generation, outcome }) => [generation, outcome])).toEqual([
    [4, 'waiting'],
    [3, 'superseded'],
    [2, 'superseded'],
    [1, 'applying'],
  ])
  expect(store.newest()).toMatchObject({ generation: 4, scheduleAt: 99, endedAt: null, reason: '' })
  expect(store.find(3)).toMatchObject({ generation: 3, by: 'ada', sensitive: ['swordfish'] })
  expect(store.find(5)).toBeUndefined()
})

it('a way back has the next number, and leaves the revision that waits', () => {
  const { store } = open()
  store.add(revision(1, { outcome: 'good', origin: 'create' }))
  store.add(revision(2, { outcome: 'failed' }))
  expect(store.pending()).toBeUndefined()
  store.add(revision(3, { scheduleAt: 99 }))
  store.add(revision(4, { origin: 'goingBack', outcome: 'applying', by: '' }))
  expect(store.pending()).toMatchObject({ generation: 3, outcome: 'waiting' })
  expect(store.newest()).toMatchObject({ generation: 4, origin: 'goingBack' })
  store.add(revision(5, { outcome: 'held' }))
  expect(store.pending()).toMatchObject({ generation: 5 })
  expect(store.find(3)?.outcome).toBe('superseded')
})

it('how a revision ended is noted with its time and reason', () => {
  const { store } = open()
  store.add(revision(1))
  store.note(1, 'failed', { at: 7, reason: 'no pod starts' })
  expect(store.find(1)).toMatchObject({ outcome: 'failed', reason: 'no pod starts', endedAt: 7 })
  store.remove(1)
  expect(store.newest()).toBeUndefined()
})

it('the plain configuration is sealed, and gone with the secret of the state folder', () => {
  const { database, store, withSecret } = open()
  store.add(revision(1))
  expect(store.find(1)?.plain).toEqual({ metadata: { name: 'shop', labels: { site: 'x' } } })
  expect(JSON.stringify(database.sql.prepare('SELECT * FROM cluster_revision').all())).not.toContain('site')
  expect(withSecret(2).find(1)).toMatchObject({ plain: undefined, sensitive: [] })
})
