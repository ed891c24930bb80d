import { expect, it } from 'vitest'
import { readConfiguration } from '../../../src/cluster/desired/configuration.ts'
import type { EdgeMachinePoolConfig } from '../../../src/cluster/schemas.ts'

const facts = {
  ...{ id: 'edge-1', hostName: 'Box', architecture: 'amd64' },
  nics: [{ nicName: 'eth0', ip: '10.0.0.2', isDefault: true }],
  addresses: ['10.0.0.2'],
}

const nodeOf = (pool: Omit<EdgeMachinePoolConfig, 'hosts'>) =>
  readConfiguration(
    {
      metadata: { name: 'plant' },
      spec: {
        archiveUploadPath: '/definition',
        cloudConfig: { spec: { machinePoolConfig: [{ ...pool, hosts: [{}] }] } },
      },
    },
    facts,
  ).node

it.each(['site', 'example.com/site', 'a.b-c.example/Site_1.x'])(
  'a label and a taint may have the name %s',
  (key) => {
    const node = nodeOf({ additionalLabels: { [key]: 'north' }, taints: [{ key, effect: 'NoSchedule' }] })
    expect(node).toMatchObject({ labels: { [key]: 'north' }, taints: [{ key, effect: 'NoSchedule' }] })
  },
)

// Accepted, each of them would make kubectl or the kubelet fail at every try.
it.each([
  '',
  '/',
  'a/',
  '/a',
  'a/b/c',
  '--all/site',
  '-l/site',
  './site',
  'a..b/site',
  'a-/site',
  'A/site',
  'site-',
])('a label and a taint may not have the name %j', (key) => {
  const place = 'spec.cloudConfig.spec.machinePoolConfig[0]'
  expect(() => nodeOf({ additionalLabels: { [key]: 'north' } })).toThrow(
    `${place}.additionalLabels[${JSON.stringify(key)}] must have`,
  )
  expect(() => nodeOf({ taints: [{ key, effect: 'NoSchedule' }] })).toThrow(`${place}.taints[0].key must be`)
})

it('two taints may have the same key, but not the same effect too', () => {
  const taints = [
    { key: 'site', value: 'a', effect: 'NoSchedule' },
    { key: 'site', value: 'b', effect: 'NoExecute' },
  ] as const
  expect(nodeOf({ taints: [...taints] }).taints).toEqual(taints)
  expect(() => nodeOf({ taints: [...taints, { ...taints[0], value: 'c' }] })).toThrow(
    'taints[2] has the key and the effect of another taint',
  )
})

it.each(['a b', 'a\n', '-a', 'x'.repeat(64)])('a pool may not have the name %j', (name) => {
  expect(() => nodeOf({ name })).toThrow('machinePoolConfig[0].name must be')
})
