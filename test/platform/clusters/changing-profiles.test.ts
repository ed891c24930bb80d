import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { ask, clusterWorld, problemCodes } from '../../support/cluster-world.ts'
import { clusterEntity, clusterProfile } from '../../support/platform-clusters.ts'

const world = clusterWorld()
type Reply = Awaited<ReturnType<typeof ask>>
const clusters = '/v1/spectroclusters/edge-native'

it('a creation and a validation never fail because their profile is deleted meanwhile', async () => {
  const host = await world.joined()
  for (const delayMs of [0, 5, 10, 20, 40, 80]) {
    const profileUid = await world.imported(clusterProfile(`deleted-${delayMs}`))
    const entity = clusterEntity(host.uid, profileUid)
    // One is examined at a time, so the creation waits.
    const asked = [`${clusters}/validate`, `${clusters}/validate`, clusters].map((url) =>
      ask('POST', url, entity),
    )
    await sleep(delayMs)
    const removal = await ask('DELETE', `/v1/clusterprofiles/${profileUid}`)
    const [, validated, created] = (await Promise.all(asked)) as [Reply, Reply, Reply]
    expect([200, 409]).toContain(validated.status)
    if (created.status === 201) {
      // It was quicker; the profile is in use then, or was deleted before.
      expect(removal.status).toBe(409)
      return
    }
    expect(removal.status).toBe(204)
    const { code } = JSON.parse(created.body) as { readonly code: string }
    expect(code === 'ClusterInvalid' ? problemCodes(created) : [code]).toEqual([
      code === 'ClusterInvalid' ? 'ProfileNotFound' : 'ClusterChanged',
    ])
  }
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

it('a value whose variable a draft makes sensitive later is shown nowhere any more', async () => {
  const host = await world.joined()
  const profileUid = await world.imported(clusterProfile('turned'))
  const variables = [{ name: 'USER', value: 'plainmark' }]
  const made = await ask('POST', clusters, clusterEntity(host.uid, profileUid, { variables }))
  const { uid } = JSON.parse(made.body) as { readonly uid: string }
  const read = async () => {
    const paths = [`/v1/spectroclusters/${uid}/variables`, `/v1/edgehosts/${host.uid}?resolvePackValues=true`]
    return Promise.all(paths.map(async (path) => (await ask('GET', path)).body))
  }
  for (const shown of await read()) expect(shown).toContain('plainmark')
  const [, ...others] = clusterProfile().spec.variables
  const change = { variables: [{ name: 'USER', isSensitive: true, defaultValue: 'paul' }, ...others] }
  expect((await ask('PUT', `/v1/clusterprofiles/${profileUid}/variables`, change)).status).toBe(204)
  for (const shown of await read()) expect(shown).not.toContain('plainmark')
  // With the next change the values are there again, masked.
  expect((await ask('POST', `/v1/spectroclusters/${uid}/apply`)).status).toBe(204)
  const [ofCluster = '', ofHost = ''] = await read()
  expect(`${ofCluster}${ofHost}`).not.toContain('plainmark')
  expect(ofHost).toContain("user: '********'")
})
