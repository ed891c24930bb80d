import { createHash, X509Certificate } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { ClusterNow } from '../../../src/uplink/desired/decide.ts'
import type { ClusterToFollow, DeliveryOutcome } from '../../../src/uplink/desired/follow.ts'
import type { ClusterReport } from '../../../src/uplink/desired/reports.ts'
import { startLinkedHost } from '../../support/linked-host.ts'
import { importProfile, tarOf, uploadPack } from '../../support/platform-packs.ts'
import { hostBody } from '../../support/host-body.ts'
import { prepareProgram } from '../../support/programs.ts'
import { exportedProfile } from '../../support/tar-bytes.ts'
import { createTestEdge } from '../../support/test-edge.ts'
import { createTestPlatform } from '../../support/test-platform.ts'

type Order = Parameters<ClusterToFollow['apply']>[0]
interface Shown {
  readonly spec: { readonly number: number }
  readonly status: {
    readonly state: string
    readonly number?: number
    readonly conditions: { readonly type: string; readonly reason?: string; readonly message?: string }[]
    readonly packs?: unknown[]
  }
}

const password = 'a long password'
let platform: Awaited<ReturnType<typeof createTestPlatform>>
let headers: Record<string, string>
let profileUid = ''
beforeAll(async () => {
  platform = await createTestPlatform()
  await platform.addUser('root@plant.example', password, ['admin'])
  headers = await platform.signIn('root@plant.example', password)
  const packs = [
    { name: 'edge-os', tag: '1.0.0', layer: 'os' },
    { name: 'edge-k8s', tag: '1.34.4', layer: 'k8s' },
    { name: 'cni', tag: '1.0.0', layer: 'cni' },
  ]
  for (const { name, tag, layer } of packs) {
    const files = {
      'pack.json': JSON.stringify({ name, version: tag, layer, cloudTypes: ['all'] }),
      'values.yaml': 'a: 1\n',
    }
    const reply = await uploadPack(platform, tarOf(files), headers)
    if (reply.statusCode !== 201) throw new Error(reply.body)
  }
  const profile = exportedProfile(
    'u1',
    {
      type: 'cluster',
      packs: packs.map((pack) => ({
        ...pack,
        type: 'spectro',
        uid: pack.name,
        values: 'user: "{{ .spectro.var.pw }}"\n',
      })),
    },
    { variables: [{ name: 'pw', isSensitive: true, defaultValue: 'hunter-of-two' }] },
  )
  const reply = await importProfile(platform, JSON.stringify(profile), headers, { publish: true })
  if (reply.statusCode !== 201) throw new Error(reply.body)
  profileUid = reply.json<{ uid: string }>().uid
})
afterAll(() => platform.close())

async function ask<T = unknown>(
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  url: string,
  payload?: object,
) {
  headers = await platform.signIn('root@plant.example', password)
  const reply = await platform.app.inject({ method, url, headers, ...(payload ? { payload } : {}) })
  if (reply.statusCode >= 300) throw new Error(`${method} ${url}: ${reply.statusCode} ${reply.body}`)
  return (reply.body === '' || reply.body === 'null' ? undefined : reply.json()) as T
}

let made = 0
/** A host that is connected, with a room of the cluster that is played: what it is told is true at once. */
async function connected() {
  const id = `wanted-${(made += 1)}`
  const { token } = platform.rooms.hosts.tokens.create({ metadata: { name: `token ${id}` } })
  const played = {
    orders: [] as Order[],
    archives: [] as string[],
    now: undefined as ClusterNow | undefined,
    outcome: undefined as DeliveryOutcome | undefined,
  }
  const host = await startLinkedHost(platform, {
    ...{ hostId: id, name: id, token },
    cluster: {
      current: () => played.now,
      async apply(order) {
        played.orders.push(order)
        if (played.outcome) return played.outcome
        if (order.isDeleted) {
          const isThere = played.now?.uid === order.uid
          if (isThere && played.now) played.now = { ...played.now, isDeleting: true }
          return { kind: isThere ? 'deleting' : 'deleted' }
        }
        const { definition } = order
        played.archives.push(
          createHash('sha256')
            .update(await buffer(definition.open()))
            .digest('hex'),
        )
        const revision = (played.now?.newest.revision ?? 0) + 1
        played.now = {
          ...{ uid: order.uid, name: order.name, isDeleting: false },
          newest: { revision, platformNumber: order.number, outcome: 'good', reason: '' },
          active: { revision, outcome: 'good' },
        }
        return { kind: 'applied', revision }
      },
      report: async (): Promise<ClusterReport | undefined> =>
        played.now && {
          ...{ uid: played.now.uid, state: played.now.isDeleting ? 'Deleting' : 'Running' },
          ...{ revision: played.now.newest.revision, message: '', steps: [], conditions: [] },
          packs: [{ name: 'cni', profileUid, version: '1.0.0', condition: { message: '' } }],
          kubeconfig: 'apiVersion: v1\nkind: Config\n',
        },
    },
  })
  await host.until(() => host.link().isConnected)
  return { ...host, played, uid: host.link().edgeHostUid!, id }
}

const create = async (hostUid: string, name: string) =>
  (
    await ask<{ uid: string }>('POST', '/v1/spectroclusters/edge-native', {
      metadata: { name },
      spec: {
        machinepoolconfig: [
          {
            cloudConfig: { edgeHosts: [{ hostUid, nic: { ip: '192.0.2.7' } }] },
            poolConfig: { isControlPlane: true },
          },
        ],
        profiles: [{ uid: profileUid }],
      },
    })
  ).uid
const shown = (uid: string) => ask<Shown>('GET', `/v1/spectroclusters/${uid}`)
const wantedOf = ({ status }: Shown) => status.conditions.find(({ type }) => type === 'Wanted')
/** Beats until the condition on the platform has this reason. */
async function until(host: Awaited<ReturnType<typeof connected>>, uid: string, reason: string) {
  for (let beat = 0; beat < 20; beat++) {
    await host.rest()
    await host.step()
    await host.rest()
    await new Promise((resolve) => setTimeout(resolve, 50))
    if (wantedOf(await shown(uid))?.reason === reason) return shown(uid)
  }
  throw new Error(JSON.stringify([await shown(uid), host.link(), host.lines.slice(-5)]))
}

describe('a cluster of the platform on a host', () => {
  it('is made, changed and deleted, and the platform sees each', async () => {
    const host = await connected()
    const uid = await create(host.uid, 'edge-1')
    const made1 = await until(host, uid, 'Applied')
    expect(made1).toMatchObject({ spec: { number: 1 }, status: { state: 'Running', number: 1 } })
    expect(made1.status.packs).toHaveLength(1)
    const [order] = host.played.orders as Extract<Order, { isDeleted: false }>[]
    expect(order).toMatchObject({ uid, name: 'edge-1', number: 1 })
    expect(host.played.archives).toEqual([(order?.definition as { sha256: string }).sha256])
    expect(JSON.stringify(order?.configuration)).toContain('hunter-of-two')

    await ask('PATCH', `/v1/spectroclusters/${uid}/variables`, [
      { profileUid, variables: [{ name: 'pw', value: 'another-secret' }] },
    ] as never)
    await host.step()
    const changed = await until(host, uid, 'Applied')
    expect(changed).toMatchObject({ spec: { number: 2 } })
    await expect
      .poll(
        async () => {
          await host.rest()
          await host.step()
          return (await shown(uid)).status.number
        },
        { timeout: 60_000 },
      )
      .toBe(2)
    expect(host.played.orders).toHaveLength(2)

    await ask('DELETE', `/v1/spectroclusters/${uid}`)
    await until(host, uid, 'Deleting')
    host.played.now = undefined
    await expect
      .poll(
        async () => {
          await host.rest()
          await host.step()
          return shown(uid).then(
            () => 'there',
            () => 'gone',
          )
        },
        { timeout: 60_000 },
      )
      .toBe('gone')
    // The next one begins at 1.
    const next = await create(host.uid, 'edge-2')
    expect(await until(host, next, 'Applied')).toMatchObject({ status: { number: 1 } })
    await host.close()
  })

  it('one that was deleted on the host is made again only when it is applied again; a change there too', async () => {
    const host = await connected()
    const uid = await create(host.uid, 'edge-4')
    await until(host, uid, 'Applied')
    host.played.now = undefined
    await until(host, uid, 'DeletedOnHost')
    expect(host.played.orders).toHaveLength(1)
    const change = (value: string) =>
      ask('PATCH', `/v1/spectroclusters/${uid}/variables`, [
        { profileUid, variables: [{ name: 'pw', value }] },
      ] as never)
    await change('applied-again')
    await until(host, uid, 'Applied')
    expect(host.played.orders).toHaveLength(2)
    // As while it was disconnected.
    const { newest } = host.played.now!
    host.played.now = { ...host.played.now!, newest: { ...newest, revision: 9, platformNumber: null } }
    expect(wantedOf(await until(host, uid, 'NewerOnHost'))?.message).toContain('revision 9')
    await change('and-again')
    expect(await until(host, uid, 'Applied')).toMatchObject({ spec: { number: 3 } })
    expect(host.played.orders).toHaveLength(3)
    await host.close()
  })

  it('a deletion that meets a change of the host waits for an operator, and nothing else carries it out', async () => {
    const host = await connected()
    const uid = await create(host.uid, 'edge-5')
    await until(host, uid, 'Applied')
    // While it was disconnected.
    const { newest } = host.played.now!
    host.played.now = { ...host.played.now!, newest: { ...newest, revision: 9, platformNumber: null } }
    await ask('DELETE', `/v1/spectroclusters/${uid}`)
    const found = await until(host, uid, 'NewerOnHost')
    expect(wantedOf(found)?.message).toMatch(/revision 9; the platform wants it deleted, and this host waits/)
    const apply = (query = '') =>
      platform.app.inject({ method: 'POST', url: `/v1/spectroclusters/${uid}/apply${query}`, headers })
    const refused = await apply()
    expect([refused.statusCode, refused.json<{ code: string }>().code]).toEqual([409, 'ClusterDeleting'])
    await host.step()
    expect(host.played.orders).toHaveLength(1)
    // Taken back, it is applied; asked for once more, it is carried out.
    expect((await apply('?cancelDeletion=true')).statusCode).toBe(204)
    expect(await until(host, uid, 'Applied')).toMatchObject({
      ...{ spec: { number: 3 }, status: { isDeletionRequested: false, state: 'Running' } },
    })
    expect(host.played.orders.map(({ isDeleted }) => isDeleted)).toEqual([false, false])
    host.played.now = { ...host.played.now, newest: { ...newest, revision: 20, platformNumber: null } }
    await ask('DELETE', `/v1/spectroclusters/${uid}`)
    await until(host, uid, 'NewerOnHost')
    await ask('DELETE', `/v1/spectroclusters/${uid}`)
    await until(host, uid, 'Deleting')
    expect(host.played.orders.at(-1)).toMatchObject({ uid, isDeleted: true, number: 5 })
    const late = await apply('?cancelDeletion=true')
    expect([late.statusCode, late.json<{ message: string }>().message]).toEqual([
      ...[409, expect.stringContaining('has begun to delete it')],
    ])
    await host.close()
  })

  it('a deletion of a cluster that gave way to another on its host takes nothing away there', async () => {
    const host = await connected()
    const uid = await create(host.uid, 'edge-6')
    await until(host, uid, 'Applied')
    await ask('DELETE', `/v1/spectroclusters/${uid}`)
    const other = '00000000-0000-4000-8000-000000000001'
    host.played.now = { ...host.played.now!, uid: other, name: 'made-here' }
    await expect
      .poll(
        async () => {
          await host.rest()
          await host.step()
          return shown(uid).then(
            () => 'there',
            () => 'gone',
          )
        },
        { timeout: 60_000 },
      )
      .toBe('gone')
    expect(host.played.now).toMatchObject({ uid: other, isDeleting: false })
    await host.close()
  })

  it('what the host refuses shows on the platform with its problem', async () => {
    const host = await connected()
    host.played.outcome = {
      kind: 'contentMissing',
      message: 'image web:1 is in no content bundle of this host',
    }
    const uid = await create(host.uid, 'edge-3')
    const found = await until(host, uid, 'ContentMissing')
    expect(wantedOf(found)?.message).toContain('image web:1')
    expect(found.status.number ?? 0).toBe(0)
    await host.close()
  })

  it('a whole daemon over TLS: the definition is examined and prepared there, and what is missing shows on the platform', async () => {
    await platform.start()
    const { port } = platform.app.server.address() as AddressInfo
    const fingerprint = new X509Certificate(
      readFileSync(join(platform.stateDirectory, 'tls', 'certificate.pem')),
    ).fingerprint256
    const { token } = platform.rooms.hosts.tokens.create({ metadata: { name: 'token of a daemon' } })
    const tokenFile = join(platform.stateDirectory, 'token-of-a-test')
    writeFileSync(tokenFile, `${token}\n`, { mode: 0o600 })
    const edge = await createTestEdge({
      ...{
        mode: 'connected',
        hostBody: await hostBody(),
        prepareProgram: prepareProgram(),
      },
      flags: [
        `--platform.url=https://127.0.0.1:${port}`,
        `--platform.fingerprint=${fingerprint}`,
        `--platform.registrationTokenFile=${tokenFile}`,
      ],
    })
    onTestFinished(() => edge.stop())
    await edge.daemon.start()
    const device = () =>
      platform.rooms.state.database.sql
        .prepare("SELECT uid FROM edge_host WHERE host_uid = 'edge-test'")
        .get() as { uid: string } | undefined
    await expect.poll(device, { timeout: 20_000 }).toBeDefined()
    const uid = await create(device()!.uid, 'edge-9')
    // Without being asked for, the heartbeat that brings it and the turn that reports it would come up to a minute later each.
    const { uplink } = edge.daemon.rooms
    uplink.reconnect()
    await expect
      .poll(async () => (await uplink.attention?.())?.map(({ code }) => code), { timeout: 120_000 })
      .toContain('OrderNotApplied')
    uplink.reconnect()
    const reason = async () => wantedOf(await shown(uid))?.reason
    await expect.poll(reason, { timeout: 120_000, interval: 1_000 }).toBeOneOf(['ContentMissing', 'Refused'])
    expect(wantedOf(await shown(uid))?.message).toContain('kubeadm')
    expect(JSON.stringify([await shown(uid), edge.lines, platform.lines])).not.toContain('hunter-of-two')
  })
})
