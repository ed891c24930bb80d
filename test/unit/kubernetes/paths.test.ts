import { describe, expect, it } from 'vitest'
import { readResources } from '../../../src/kubernetes/create-client.ts'
import { collectionPath, groupPath, objectPath } from '../../../src/kubernetes/paths.ts'

const deployments = {
  ...{ group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', isNamespaced: true },
}
const nodes = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', isNamespaced: false }

describe('a path', () => {
  it('names a group, all objects, those of a namespace, or one', () => {
    expect(groupPath('v1')).toBe('/api/v1')
    expect(groupPath('apps/v1')).toBe('/apis/apps/v1')
    expect(collectionPath(deployments, undefined)).toBe('/apis/apps/v1/deployments')
    expect(collectionPath(deployments, 'shop')).toBe('/apis/apps/v1/namespaces/shop/deployments')
    expect(collectionPath(nodes, 'shop')).toBe('/api/v1/nodes')
    expect(objectPath(deployments, { name: 'web', namespace: 'shop' })).toBe(
      '/apis/apps/v1/namespaces/shop/deployments/web',
    )
    expect(objectPath(nodes, { name: 'system:node', namespace: 'shop' })).toBe('/api/v1/nodes/system%3Anode')
  })

  it.each(['', '.', '..', 'a/b', 'a%2fb', null as never])('is refused for the name %j', (name) => {
    for (const reference of [
      { name, namespace: 'shop' },
      { name: 'web', namespace: name },
    ])
      expect(() => objectPath(deployments, reference)).toThrow('is not a name in Kubernetes')
  })

  it('stays within the group, whatever the name of that', () => {
    expect(groupPath('a?b=c/v1#d')).toBe('/apis/a%3Fb%3Dc/v1%23d')
  })
})

it('resources are found by their kind, without their parts', () => {
  // Shortened from kube-apiserver 1.34.4.
  const list = {
    ...{ kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'apps/v1' },
    resources: [
      { name: 'deployments', singularName: 'deployment', namespaced: true, kind: 'Deployment' },
      { name: 'deployments/scale', namespaced: true, group: 'autoscaling', version: 'v1', kind: 'Scale' },
      { name: 'deployments/status', namespaced: true, kind: 'Deployment' },
      ...[null, {}, { name: '', kind: 'X' }, { name: 3, kind: 'Y' }],
    ],
  }
  expect([...readResources('apps/v1', list)]).toEqual([['Deployment', deployments]])
  expect(
    readResources('v1', { resources: [{ name: 'nodes', namespaced: false, kind: 'Node' }] }).get('Node'),
  ).toEqual(nodes)
  for (const other of [undefined, [], { resources: 'none' }]) expect(readResources('v1', other).size).toBe(0)
})
