import { expect, it } from 'vitest'
import { ask, clusterWorld, create, shown } from '../../support/cluster-world.ts'

const world = clusterWorld()

it('values that a cluster has already give no number', async () => {
  const profileUid = world.profileUid()
  const given = [
    { name: 'USER', value: 'paul' },
    { name: 'PASSWORD', value: 'of-this-one' },
  ]
  const uid = await create(await world.joined(), { variables: given })
  const numberAfter = async (variables: readonly object[], profiles = [{ profileUid, variables }]) => {
    const { status, body } = await ask('PATCH', `/v1/spectroclusters/${uid}/variables`, profiles)
    expect([status, body]).toEqual([204, ''])
    return (await shown(uid)).spec.number
  }
  expect(await numberAfter([], [])).toBe(1)
  expect(await numberAfter([])).toBe(1)
  expect(await numberAfter([...given].reverse())).toBe(1)
  expect(await numberAfter([{ name: 'PASSWORD', value: '********' }])).toBe(1)
  expect(await numberAfter([{ name: 'USER', value: 'paula' }])).toBe(2)
})

it('one of several entity tags may be that of the cluster', async () => {
  const uid = await create(await world.joined())
  const url = `/v1/spectroclusters/${uid}/apply`
  const apply = async (tags: string) =>
    (await ask('POST', url, undefined, { ...world.admin(), 'if-match': tags })).status
  expect(await apply('"7", "8"')).toBe(412)
  expect(await apply('"7", "1"')).toBe(204)
  expect(await apply('"2", "7"')).toBe(204)
})
