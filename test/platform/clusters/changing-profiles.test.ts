import { expect, it } from 'vitest'
import { ask, clusterWorld, problemCodes } from '../../support/cluster-world.ts'
import { clusterEntity, clusterProfile } from '../../support/platform-clusters.ts'

const world = clusterWorld()
const clusters = '/v1/spectroclusters/edge-native'

it('a creation that waits while its profile is deleted is told that', async () => {
  const [host, profileUid] = [await world.joined(), await world.imported(clusterProfile('deleted'))]
  // One is examined at a time, so the others wait long enough.
  const before = Array.from({ length: 8 }, () =>
    ask('POST', `${clusters}/validate`, clusterEntity(host.uid, world.profileUid())),
  )
  const waiting = ask('POST', clusters, clusterEntity(host.uid, profileUid))
  const checked = ask('POST', `${clusters}/validate`, clusterEntity(host.uid, profileUid))
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect((await ask('DELETE', `/v1/clusterprofiles/${profileUid}`)).status).toBe(204)
  expect((await Promise.all(before)).map(({ status }) => status)).toEqual(Array(8).fill(200))
  expect([(await waiting).status, (await waiting).json?.code]).toEqual([409, 'ClusterChanged'])
  expect([(await checked).status, problemCodes(await checked)]).toEqual([200, ['ProfileNotFound']])
})

it('a validation that waits while its profile is changed checks what it was or what it is', async () => {
  const [host, profileUid] = [await world.joined(), await world.imported(clusterProfile('changing'))]
  const entity = clusterEntity(host.uid, profileUid)
  const { variables } = clusterProfile().spec
  const isNeeded = { name: 'NEEDED', required: true }
  for (const isChanged of [true, false, true]) {
    const change = ask('PUT', `/v1/clusterprofiles/${profileUid}/variables`, {
      variables: isChanged ? [...variables, isNeeded] : variables,
    })
    const checked = await Promise.all([1, 2, 3, 4].map(() => ask('POST', `${clusters}/validate`, entity)))
    expect((await change).status).toBe(204)
    expect(checked.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  }
  expect(problemCodes(await ask('POST', `${clusters}/validate`, entity))).toEqual(['VariableInvalid'])
})
