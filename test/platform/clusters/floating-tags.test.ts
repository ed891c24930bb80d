import { expect, it } from 'vitest'
import { ask, clusterWorld, create, shown } from '../../support/cluster-world.ts'
import { clusterProfile } from '../../support/platform-clusters.ts'
import { smallPack, tarOf, uploadPack } from '../../support/platform-packs.ts'

const world = clusterWorld()

async function uploaded(name: string, version: string) {
  const reply = await uploadPack(world.platform(), tarOf(smallPack(name, version)), world.admin())
  return reply.json<{ uid: string }>().uid
}

/** A profile whose last pack has a tag that floats. */
function floating(name: string, more: readonly object[] = []) {
  const profile = clusterProfile(name)
  const { packs } = profile.spec.template
  const [web] = packs.splice(3)
  return {
    ...profile,
    spec: {
      ...profile.spec,
      template: { ...profile.spec.template, packs: [...packs, { ...web!, name, tag: '2.0.x' }, ...more] },
    },
  }
}

const packOf = async (uid: string, name: string) =>
  (await shown(uid)).spec.clusterProfileTemplates[0]?.packs.find((pack) => pack.name === name)

async function meantBy(profileUid: string) {
  const { body } = await ask('GET', `/v1/clusterprofiles/${profileUid}`)
  const { spec } = JSON.parse(body) as { spec: { draft: { packs: { packUid: string }[] } } }
  return spec.draft.packs[3]?.packUid
}

it('a tag means the newest version that fits, from the next change of a cluster on', async () => {
  const first = await uploaded('fq', '2.0.9')
  const profileUid = await world.imported(floating('fq'))
  const uid = await create(await world.joined(), {}, profileUid)
  expect(await packOf(uid, 'fq')).toMatchObject({ tag: '2.0.x', version: '2.0.9', packUid: first })

  const second = await uploaded('fq', '2.0.10')
  await uploaded('fq', '2.1.0')
  expect(await meantBy(profileUid)).toBe(second)
  expect(await packOf(uid, 'fq')).toMatchObject({ packUid: first })
  const values = await ask('PATCH', `/v1/spectroclusters/${uid}/variables`, [
    { profileUid, variables: [{ name: 'USER', value: 'paula' }] },
  ])
  expect([values.status, values.body]).toEqual([204, ''])
  expect(await packOf(uid, 'fq')).toMatchObject({ tag: '2.0.x', version: '2.0.10', packUid: second })
  expect((await ask('POST', `/v1/spectroclusters/${uid}/apply`)).status).toBe(204)
  expect(await packOf(uid, 'fq')).toMatchObject({ packUid: second })
})

it('a definition may have several versions that fit a tag; its host takes the one that is meant', async () => {
  await uploaded('twice', '2.0.0')
  await uploaded('twice', '2.0.1')
  const exact = {
    ...{ name: 'twice', layer: 'addon', tag: '2.0.0', type: 'spectro', values: 'a: 1\n' },
    annotations: { 'spectrocloud.com/display-name': 'the older one' },
  }
  const profileUid = await world.imported(floating('twice', [exact]))
  const uid = await create(await world.joined(), {}, profileUid)
  const { packs = [] } = (await shown(uid)).spec.clusterProfileTemplates[0] ?? {}
  expect(packs.slice(3).map(({ version }) => version)).toEqual(['2.0.1', '2.0.0'])
})

it('a pack that a cluster was made of is not deleted, nor the one that its profile means', async () => {
  const remove = async (uid: string) => {
    const { status, json } = await ask('DELETE', `/v1/packs/${uid}`)
    return status === 409 ? [json?.code, json?.message] : status
  }
  const first = await uploaded('kept', '2.0.0')
  const profileUid = await world.imported(floating('kept'))
  const uid = await create(await world.joined(), { name: 'keeping' }, profileUid)
  const second = await uploaded('kept', '2.0.1')
  expect(await remove(first)).toEqual(['PackInUse', 'kept 2.0.0 is used by the cluster keeping'])
  expect(await remove(second)).toEqual(['PackInUse', 'kept 2.0.1 is used by the cluster profile kept 1.0.0'])
  await ask('POST', `/v1/spectroclusters/${uid}/apply`)
  expect(await remove(first)).toBe(204)
})
