import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { PlatformLink } from '../../../src/uplink/schemas.ts'
import { listAudits } from '../../support/audits.ts'
import { wantedCluster } from '../../support/cluster-parts.ts'
import { clusterDefinition, infrastructure } from '../../support/cluster-definitions.ts'
import { hostBody } from '../../support/host-body.ts'
import { plantCluster } from '../../support/planted-cluster.ts'
import { clusterUid, deliveryOf, type DeliveryWish } from '../../support/played-download.ts'
import { playPlatform } from '../../support/played-platform.ts'
import { prepareProgram } from '../../support/programs.ts'
import { createTestEdge } from '../../support/test-edge.ts'

const secret = 'swordfish-0907'
const variables = [{ name: 'password', isSensitive: true, required: true }]
const definition = clusterDefinition(
  [...infrastructure, { name: 'web', values: 'user: "{{ .spectro.var.password }}"\n', files: {} }],
  variables,
)
const configuration = {
  metadata: { name: 'edge-1' },
  spec: { profileVariables: [{ name: 'password', profileUid: 'u1', value: secret }] },
}

/** A whole daemon that is connected to a played platform over TLS. */
async function connected(
  wish: DeliveryWish,
  before: (edge: Awaited<ReturnType<typeof createTestEdge>>) => void = () => undefined,
) {
  const platform = await playPlatform(deliveryOf(wish))
  const edge = await createTestEdge({
    ...{ mode: 'connected', hostBody: await hostBody(), flags: platform.flags },
    prepareProgram: prepareProgram(),
  })
  onTestFinished(() => edge.stop())
  before(edge)
  await edge.daemon.start()
  const { access } = await edge.login('alice')
  const link = async () => (await edge.get('/v1/edge-mgmt/platform', access)).json<PlatformLink>()
  const until = async (...reasons: readonly string[]) => {
    const reason = async () => (await link()).wanted?.condition?.reason
    await expect.poll(reason, { timeout: 18_000 }).toBeOneOf([...reasons])
    return (await link()).wanted
  }
  const kept = () => readFileSync(join(edge.stateDirectory, 'platform/wanted.json'), 'utf8')
  return { ...{ platform, edge, access, until, kept } }
}

it('what the platform wants goes through examination and pre-flight; what is missing is said before anything is touched', async () => {
  const { platform, edge, access, until, kept } = await connected({ definition, configuration })
  // What else the pre-flight finds depends on this machine.
  const wanted = await until('ContentMissing', 'Refused')
  expect(wanted).toMatchObject({ number: 1, acceptedNumber: 0, clusterUid, clusterName: 'edge-1' })
  expect(wanted?.condition?.message).toContain('kubeadm')
  expect((await edge.get('/v1/edge-mgmt/cluster', access)).statusCode).toBe(404)
  // The definition was examined, and is in its slot.
  expect(edge.database.sql.prepare('SELECT slot, name FROM definition').all()).toEqual([
    { slot: 'platform', name: 'factory' },
  ])
  await expect
    .poll(() => platform.reports.get('status/conditions'), { timeout: 18_000 })
    .toMatchObject([
      {
        type: 'Wanted',
        status: 'False',
        reason: wanted?.condition?.reason,
        // The platform keeps this much of it.
        message: wanted?.condition?.message.slice(0, 2_048),
      },
    ])
  expect(platform.reports.get('heartbeat')).toMatchObject({ number: 0, agentVersion: '1.2.3' })
  expect(existsSync(join(edge.stateDirectory, 'platform/download'))).toBe(
    wanted?.condition?.reason === 'ContentMissing',
  )
  expect(platform.played.asked).toEqual([{ range: undefined, token: 'token-of-the-host' }])
  for (const text of [kept(), JSON.stringify([...platform.reports]), JSON.stringify(edge.lines)])
    expect(text).not.toContain(secret)
})

it('an archive that is no definition is refused by the examination', async () => {
  const { until } = await connected({ configuration })
  expect((await until('Refused'))?.condition?.message).toContain('archive')
})

it('a cluster that was made on the host is left alone', async () => {
  const { edge, until, access } = await connected({ definition, configuration }, plantCluster)
  expect((await until('ClusterExists'))?.condition?.message).toContain('edge-1')
  expect((await edge.get('/v1/edge-mgmt/cluster/revisions', access)).json()).toMatchObject({
    items: [{ revision: 1 }],
  })
})

it('a deletion takes the cluster that the platform has made from the host, and the trail says who wanted it', async () => {
  const { uid, name } = wantedCluster()
  const { platform, access, edge, until, kept } = await connected(
    { uid, name, number: 7, isDeleted: true },
    plantCluster,
  )
  await until('Deleted')
  expect(JSON.parse(kept())).toMatchObject({ uid, number: 7, accepted: 7, outcome: 'deleted' })
  expect((await edge.get('/v1/edge-mgmt/cluster', access)).statusCode).toBe(404)
  const { items } = await listAudits(edge, access)
  expect(items.map(({ spec }) => spec)).toContainEqual(
    expect.objectContaining({
      ...{ actionType: 'delete', resource: { kind: 'cluster', name, uid } },
      message: 'Delete the cluster, as the platform wants it (number 7)',
    }),
  )
  await expect
    .poll(() => platform.reports.get('heartbeat'), { timeout: 18_000 })
    .toMatchObject({ state: 'Deleted', number: 7 })
})
