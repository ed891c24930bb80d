import { expect, it } from 'vitest'
import { configurationProblems } from '../../../src/platform/clusters/check-configuration.ts'
import type { HostRecord } from '../../../src/platform/hosts/store.ts'

const problemsOf = (address: string, nics: HostRecord['reported']['device']['nics'] = []) =>
  configurationProblems(
    {
      metadata: { name: 'plant' },
      spec: {
        cloudConfig: {
          spec: {
            clusterConfig: { controlPlaneEndpoint: { host: address, type: 'VIP' } },
            machinePoolConfig: [{ hosts: [{ hostUid: 'edge-1' }] }],
          },
        },
      },
    },
    {
      ...{ hostUid: 'edge-1', name: 'press' },
      reported: { device: { archType: 'amd64', nics }, hostAddress: '10.77.0.11', service: {} },
    } as unknown as HostRecord,
  )

const nics = [
  { nicName: 'eth0', ip: '10.77.0.11', subnet: '255.255.255.0', isDefault: true },
  { nicName: 'eth1', ip: '10.78.1.11/22' },
  { nicName: 'eth2', ip: 'fd00::11', subnet: '64' },
  { nicName: 'wlan0' },
]

it.each(['10.77.0.50', ' 10.77.0.50 ', '10.77.0.11', '10.78.3.1', 'fd00::50', ''])(
  'the address %j is possible',
  (address) => {
    expect(problemsOf(address, nics)).toEqual([])
  },
)

it.each([
  [
    '8.8.8.8',
    'is in no network of the host press; take a free one of 10.77.0.0/24, 10.78.0.0/22, fd00::11/64, or leave it empty',
  ],
  ['10.77.0.255', 'is reserved in the network 10.77.0.0/24; take another one'],
])('of what only the host knows for sure there is a warning: %s %s', (address, reason) => {
  expect(problemsOf(address, nics)).toEqual([
    {
      ...{ code: 'EndpointInvalid', severity: 'warning' },
      path: 'spec.cloudConfig.controlPlaneEndpoint.host',
      message: `the address of the control plane "${address}" ${reason}`,
    },
  ])
})

it('of a host that has reported no network, only what no host can have is refused', () => {
  expect(problemsOf('8.8.8.8')).toEqual([])
  expect(problemsOf('0.0.0.0')).toMatchObject([{ severity: 'error' }])
})
