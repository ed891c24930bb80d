import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { createClusterStore, type NewCluster } from '../../../src/cluster/cluster-store.ts'
import { createLock } from '../../../src/base/lock.ts'
import { createFileSync } from '../../../src/cluster/desired/file-sync.ts'
import { createAcceptance, createExamine, pinHolder } from '../../../src/cluster/desired/acceptance.ts'
import { createCreation, createRequestStore } from '../../../src/cluster/desired/creation.ts'
import type { Prepared, PrepareRequest } from '../../../src/cluster/desired/prepared.ts'
import type { PreflightProblem } from '../../../src/cluster/desired/preflight-codes.ts'
import { createRevisionStore, createSealed } from '../../../src/cluster/desired/revisions.ts'
import type { ClusterConfiguration } from '../../../src/cluster/schemas.ts'
import { createSecrets } from '../../../src/secrets/secrets.ts'
import { openDatabase } from '../../support/open-database.ts'
import { captureLog } from '../../support/https-server.ts'
import { planParts, wantedCluster, wantedPack } from '../../support/cluster-parts.ts'
import { createTurningClock, dayMs } from '../../support/turning-clock.ts'

const secret = 'swordfish-0907'
const body = (name = 'shop'): ClusterConfiguration => ({
  metadata: { name },
  spec: {
    archiveUploadPath: '/definitions/1',
    profileVariables: [{ name: 'password', value: secret }],
  },
})
const signal = new AbortController().signal

function createWorld({ problems = [] as PreflightProblem[], endpoint = 'own' } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-creation-'))
  const file = join(folder, 'edgehostd.db')
  const database = openDatabase(file, captureLog().log)
  onTestFinished(() => {
    database.close()
    rmSync(folder, { recursive: true })
  })
  const clock = createTurningClock()
  const sealed = createSealed(createSecrets(Buffer.alloc(32, 7)))
  const store = createClusterStore(database, sealed)
  const revisions = createRevisionStore(database, sealed)
  const done: string[] = []
  const events: string[] = []
  const copies: NewCluster[] = []
  const removals: string[] = []
  const endpoints: string[] = []
  const hold: { gate?: Promise<void> } = {}
  const prepare = async ({ uid, name, node }: PrepareRequest): Promise<Prepared> => {
    done.push('prepare')
    endpoints.push(node.endpoint)
    await hold.gate
    return {
      desired: wantedCluster({ uid, name, node, folder: '/nowhere', packs: [wantedPack('web')] }),
      problems: [],
      profiles: [],
      variables: [{ profileUid: 'p1', name: 'password', value: secret, isSensitive: true }],
      needs: [],
      chartDigests: [],
      derived: [],
      definition: { name: 'factory', version: '1.0.0', sha256: 'a'.repeat(64) },
      keep: async () => void done.push('keep'),
      discard: async () => void done.push('discard'),
    }
  }
  const inTurn = createLock()
  const examine = createExamine({
    prepare: { prepare },
    preflight: async (_prepared, posted) => {
      const all = [...posted, ...problems]
      return {
        problems: all,
        isPossible: !all.some((each) => each.severity === 'error'),
        needs: [],
        digests: ['sha256:1'],
      }
    },
  })
  const content = {
    pin: async (holder: string) => void done.push(`pin ${holder}`),
    renewPins: async (holder: string, digests: readonly string[]) =>
      void done.push(`renew ${holder}: ${digests.join()}`),
  }
  const creation = createCreation({
    ...{ store, sealed, clock, parts: planParts, inTurn, examine },
    accept: createAcceptance({ database, revisions, sealed, content, refuseBusy: () => undefined, clock }),
    refuseBusy: () => undefined,
    requests: createRequestStore(database),
    facts: () => ({
      ...{ id: 'edge-7', hostName: 'press-7', architecture: 'amd64', addresses: ['192.0.2.7'] },
      nics: [{ nicName: 'eth0', ip: '192.0.2.7', isDefault: true }],
    }),
    placeEndpoint: async () =>
      endpoint === 'own'
        ? { kind: 'own' }
        : {
            kind: 'refused',
            problem: { code: 'EndpointInvalid', severity: 'error', message: 'in no network of this host' },
          },
    events: { add: ({ reason, message }) => void events.push(`${reason}: ${message}`) },
    writeCopy: async (cluster) => void copies.push(cluster),
    removePrograms: async () => void removals.push('programs'),
    removeFiles: async () => void done.push('remove'),
    onAccepted: () => void done.push('accepted'),
  })
  const upkeep = createFileSync({
    isComplete: () => true,
    ...{ store, revisions, content, inTurn, log: captureLog().log },
    ...{ followCopy: async () => undefined, copies: async () => [] },
  })
  /** As the loop does it at the end of a deletion. */
  const remove = () => {
    store.remove()
    revisions.clear()
  }
  return {
    ...{ creation, upkeep, store, revisions, remove, clock, done, events, copies, removals, endpoints, hold },
    ...{ file, database },
  }
}

it('an accepted cluster is pinned, kept and stored, with its secrets masked and sealed', async () => {
  const { creation, store, revisions, done, events, copies, removals, database } = createWorld()
  const { uid, isRepeated } = await creation.create(body(), { by: 'ada' }, signal)
  expect(done).toEqual([
    'prepare',
    `pin ${pinHolder}`,
    `renew ${pinHolder}: sha256:1`,
    'keep',
    'accepted',
    'discard',
  ])
  expect(isRepeated).toBe(false)
  expect(removals).toEqual([])
  expect(copies).toMatchObject([{ uid, sensitive: [secret] }])
  expect(store.current()).toMatchObject({ uid, name: 'shop', generation: 1, sensitive: [secret] })
  expect(store.current()?.posted.spec?.profileVariables).toEqual([{ name: 'password', value: '********' }])
  expect(events.map((each) => each.split(':')[0])).toEqual(['Accepted', 'PreflightPassed'])
  expect(revisions.newest()).toMatchObject({
    ...{ generation: 1, by: 'ada', origin: 'create', outcome: 'applying' },
    plain: body(),
  })
  const rows = JSON.stringify([
    ...database.sql.prepare('SELECT * FROM cluster').all(),
    ...database.sql.prepare('SELECT * FROM cluster_revision').all(),
  ])
  expect(rows).not.toContain(secret)
  expect(
    Buffer.concat(
      database.sql
        .prepare('SELECT sealed, mark FROM cluster')
        .all()
        .flatMap((row) => Object.values(row) as Uint8Array[]),
    ).includes(secret),
  ).toBe(false)
})

it('of two requests at the same time one creates the cluster; an equal one gets its uid, another one is refused', async () => {
  const { creation, hold, done } = createWorld()
  const gate = Promise.withResolvers<undefined>()
  hold.gate = gate.promise
  const first = creation.create(body(), { by: 'ada' }, signal)
  const equal = creation.create(body(), { by: 'ada' }, signal)
  const other = creation.create(body('other'), { by: 'ada' }, signal)
  const refused = expect(other).rejects.toMatchObject({ code: 'ClusterExists' })
  gate.resolve(undefined)
  const { uid } = await first
  expect(await equal).toMatchObject({ uid, isRepeated: true })
  await refused
  await expect(other).rejects.toMatchObject({ details: { uid } })
  expect(done.filter((each) => each === 'prepare')).toHaveLength(1)
})

it('the same key gets the same uid for a day, also when the cluster is gone; another body is refused', async () => {
  const { creation, remove, clock } = createWorld()
  const { uid } = await creation.create(body(), { by: 'ada', key: 'key-1' }, signal)
  expect(await creation.create(body(), { by: 'ada', key: 'key-1' }, signal)).toMatchObject({
    uid,
    isRepeated: true,
  })
  await expect(creation.create(body('other'), { by: 'ada', key: 'key-1' }, signal)).rejects.toMatchObject({
    code: 'IdempotencyKeyReused',
  })
  remove()
  expect(await creation.create(body(), { by: 'ada', key: 'key-1' }, signal)).toMatchObject({
    uid,
    isRepeated: true,
  })
  clock.turn(dayMs)
  expect((await creation.create(body(), { by: 'ada', key: 'key-1' }, signal)).uid).not.toBe(uid)
})

it('a key that was sent with an equal body is remembered too', async () => {
  const { creation, remove } = createWorld()
  const { uid } = await creation.create(body(), { by: 'ada' }, signal)
  expect(await creation.create(body(), { by: 'ada', key: 'key-2' }, signal)).toMatchObject({ uid })
  remove()
  expect(await creation.create(body(), { by: 'ada', key: 'key-2' }, signal)).toMatchObject({
    uid,
    isRepeated: true,
  })
})

it('no cluster is created, and no equal body repeated, while one is deleted', async () => {
  const { creation, store, clock } = createWorld()
  await creation.create(body(), { by: 'ada' }, signal)
  store.requestDeletion(clock.now())
  await expect(creation.create(body(), { by: 'ada' }, signal)).rejects.toMatchObject({
    code: 'ClusterExists',
    message: /is being deleted/,
  })
})

it('a failed pre-flight names every problem, errors and warnings, without secrets, and nothing is kept', async () => {
  const { creation, store, done } = createWorld({
    endpoint: 'refused',
    problems: [
      { code: 'CheckFailed', severity: 'error', message: `could not check ${secret}` },
      { code: 'ClockWrong', severity: 'warning', message: 'the clock is wrong' },
    ],
  })
  await expect(creation.create(body(), { by: 'ada', key: 'key-1' }, signal)).rejects.toMatchObject({
    code: 'PreflightFailed',
    message: /^the cluster cannot be created: in no network of this host, and 1 more error/,
    details: {
      problems: [
        { code: 'EndpointInvalid' },
        { code: 'CheckFailed', message: 'could not check ********' },
        { code: 'ClockWrong', severity: 'warning' },
      ],
    },
  })
  expect(store.current()).toBeUndefined()
  expect(done).toEqual(['prepare', 'discard'])
})

it('a dry run reports and plans, and changes nothing', async () => {
  const { creation, store, done, removals } = createWorld()
  const { isPossible, plan } = await creation.tryOut(body(), signal)
  expect(isPossible).toBe(true)
  expect(plan.map(({ key }) => key)).toEqual(['record', 'prepare', 'init', 'p1/web apply', 'p1/web wait'])
  expect(store.current()).toBeUndefined()
  expect(done).toEqual(['prepare', 'discard'])
  expect(removals).toEqual(['programs'])
})

it('a client that goes away while the checks run creates nothing', async () => {
  const { creation, store, hold, done } = createWorld()
  const gate = Promise.withResolvers<undefined>()
  hold.gate = gate.promise
  const gone = new AbortController()
  const created = creation.create(body(), { by: 'ada' }, gone.signal)
  const refused = expect(created).rejects.toThrow('gone')
  gone.abort(new Error('the client is gone'))
  gate.resolve(undefined)
  await refused
  expect(store.current()).toBeUndefined()
  expect(done).toEqual(['prepare', 'discard'])
})

it('where the database cannot be written nothing is kept, and the refusal says so', async () => {
  const { creation, store, done, file } = createWorld()
  const other = new DatabaseSync(file)
  onTestFinished(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  await expect(creation.create(body(), { by: 'ada' }, signal)).rejects.toMatchObject({
    code: 'InsufficientStorage',
  })
  expect(done).toEqual([
    'prepare',
    `pin ${pinHolder}`,
    `renew ${pinHolder}: sha256:1`,
    'keep',
    'remove',
    `renew ${pinHolder}: `,
    'discard',
  ])
  other.exec('ROLLBACK')
  expect(store.current()).toBeUndefined()
})

it('content that was kept for a cluster which was not accepted is let go, that of a cluster is pinned again until it is deleted', async () => {
  const { creation, upkeep, done, store } = createWorld()
  await upkeep.run()
  expect(done).toEqual([`renew ${pinHolder}: `])
  await creation.create(body(), { by: 'ada' }, signal)
  done.length = 0
  await upkeep.run()
  expect(done).toEqual([`renew ${pinHolder}: sha256:1`])
  store.requestDeletion(1)
  await upkeep.run()
  expect(done).toHaveLength(1)
})

it('sealed values are read again with the same secret only, and only unaltered', () => {
  const sealed = createSealed(createSecrets(Buffer.alloc(32, 7)))
  const bytes = sealed.seal(secret)
  expect(sealed.open(bytes)).toBe(secret)
  expect(sealed.seal(secret).equals(bytes)).toBe(false)
  expect(createSealed(createSecrets(Buffer.alloc(32, 8))).open(bytes)).toBeUndefined()
  bytes.writeUInt8(bytes.readUInt8(30) ^ 1, 30)
  expect(sealed.open(bytes)).toBeUndefined()
})

it('with an endpoint that is refused, the rest is judged with the address of the host', async () => {
  const { creation, endpoints } = createWorld({ endpoint: 'refused' })
  const clusterConfig = { controlPlaneEndpoint: { host: 'no address', type: 'VIP' as const } }
  const posted = { ...body(), spec: { ...body().spec, cloudConfig: { spec: { clusterConfig } } } }
  const { problems } = await creation.tryOut(posted, signal)
  expect(problems.map(({ code }) => code)).toEqual(['EndpointInvalid'])
  expect(endpoints).toEqual(['192.0.2.7'])
})
