import { describe, expect, it } from 'vitest'
import { builtInKind, isBuiltInGroup } from '../../../src/kubernetes/built-in-kinds.ts'
import { readResources } from '../../../src/kubernetes/create-client.ts'
import { groupOf } from '../../../src/kubernetes/paths.ts'
import { startKubernetesApi } from '../../support/kubernetes-api.ts'
import { isKitMissing, kitVersions } from '../../support/kubernetes-kit.ts'

// Every kind that one of the versions has is asked of both.
describe.skipIf(isKitMissing())('the kinds of Kubernetes', { timeout: 120_000 }, () => {
  const listed = new Map<string, Map<string, boolean>>()

  it.each(kitVersions)('are those that the API server of %s lists', async (version) => {
    const api = await startKubernetesApi(version)
    try {
      const ask = async (path: string) => JSON.parse(await api.kubectl('get', '--raw', path)) as unknown
      const { groups } = (await ask('/apis')) as {
        groups: { versions: { groupVersion: string }[] }[]
      }
      const versions = groups.flatMap((group) => group.versions.map(({ groupVersion }) => groupVersion))
      const kinds = new Map<string, boolean>()
      for (const each of ['v1', ...versions]) {
        expect(isBuiltInGroup(groupOf(each)), each).toBe(true)
        const resources = readResources(each, await ask(each === 'v1' ? '/api/v1' : `/apis/${each}`))
        for (const { kind, isNamespaced } of resources.values()) kinds.set(`${each} ${kind}`, isNamespaced)
      }
      listed.set(version, kinds)
      const minor = Number(version.split('.')[1])
      for (const [key, isNamespaced] of kinds) {
        const [apiVersion = '', kind = ''] = key.split(' ')
        expect(builtInKind(apiVersion, kind, minor), key).toEqual({ isNamespaced })
      }
    } finally {
      await api.stop()
    }
  })

  it('of a newer version are not those of an older one', () => {
    const minors = kitVersions.map((version) => Number(version.split('.')[1]))
    const all = new Set([...listed.values()].flatMap((kinds) => [...kinds.keys()]))
    expect(all.size).toBeGreaterThan(50)
    for (const [index, version] of kitVersions.entries())
      for (const key of all) {
        const [apiVersion = '', kind = ''] = key.split(' ')
        const isThere = builtInKind(apiVersion, kind, minors[index] ?? 0) !== undefined
        expect(isThere, `${key} in ${version}`).toBe(listed.get(version)?.has(key))
      }
  })

  it('are none of removed versions and of groups that are added', () => {
    expect(builtInKind('extensions/v1beta1', 'Ingress', 34)).toBeUndefined()
    expect(builtInKind('apps/v1', 'Ingress', 34)).toBeUndefined()
    expect(isBuiltInGroup('extensions')).toBe(true)
    expect(isBuiltInGroup('gateway.networking.k8s.io')).toBe(false)
  })
})
