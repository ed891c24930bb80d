import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createContinueTokens } from '../src/lists/continue-token.ts'
import { listInMemory } from '../src/lists/memory.ts'
import { parseListQuery } from '../src/lists/query.ts'
import { createHostParts } from '../src/platform/hosts/hosts.ts'
import { hostList } from '../src/platform/hosts/store.ts'
import { createKeptPools } from '../src/platform/clouds/kept-pools.ts'
import { machineList } from '../src/platform/clouds/machines.ts'
import { migrations } from '../src/edgeplatformd/migrations.ts'
import { toMachine } from '../src/platform/clouds/openstack/openstack.ts'
import { createSecrets } from '../src/secrets/secrets.ts'
import { openDatabase } from '../src/store/database.ts'
import { createReader } from '../src/store/reader.ts'
import { systemClock } from '../src/system/clock.ts'
import { createLog } from '../src/system/log.ts'
import { ratioFigure, type Measure } from './figure.ts'
import { spread } from './numbers.ts'
import { insertHosts } from './platform-rig.ts'

const size = 1_200
const pagesPerRound = 50

/** A page of the machines of a pool that are in memory, and a page of as many hosts. */
export const measurePlatformMachines: Measure = async (rig) => {
  const rounds = rig.isQuick ? 5 : 50
  const log = createLog('fatal')
  const file = join(rig.folder, 'platform-machines.db')
  const database = openDatabase(file, log, migrations)
  insertHosts(file, size, 'a'.repeat(43))
  const reader = createReader(database.sql, { maximumWaiting: 64 })
  const secrets = createSecrets(randomBytes(32))
  const ground = { database, read: reader.read, secrets, clock: systemClock, log }
  const hosts = await createHostParts(ground, {
    tenantUid: 'tenant',
    findProject: () => undefined,
    clusterOn: () => undefined,
    changes: { gone: () => undefined },
    requireSpace: () => undefined,
  })
  const tokens = createContinueTokens(randomBytes(32))
  const machines = Array.from({ length: size }, (_, index) => toMachine(serverOf(index), portsOf(index)))
  const pools = createKeptPools({
    ...{ clock: systemClock, log, stopping: new AbortController().signal },
    // The cloud is not what is measured.
    limits: { everyMs: 3_600_000, keptMs: 3_600_000 },
  })

  const pages = {
    async hosts() {
      const query = parseListQuery({}, hostList, { tokens })
      return hosts.list.page(query, hosts.inScope(''))
    },
    async machines() {
      const query = parseListQuery({}, machineList, { tokens })
      const seen = await pools.see('a pool', async () => machines)
      return listInMemory(seen.machines, query, machineList, (machine) => machine)
    },
  }
  /** Milliseconds that a page takes, as JSON. */
  async function duration(page: () => Promise<object>): Promise<number> {
    const all = []
    for (let count = 0; count < pagesPerRound; count += 1) {
      const begin = performance.now()
      JSON.stringify(await page())
      all.push(performance.now() - begin)
    }
    return spread(all).median
  }
  const found = { hosts: [] as number[], machines: [] as number[] }
  // Round -1 warms the code and does not count.
  for (let round = -1; round < rounds; round += 1) {
    rig.say(`platform-machines: round ${round + 1} of ${rounds}`)
    const [ofHosts, ofMachines] = [await duration(pages.hosts), await duration(pages.machines)]
    if (round < 0) continue
    found.hosts.push(ofHosts)
    found.machines.push(ofMachines)
  }
  hosts.stop()
  await reader.close()
  database.close()
  return [
    ratioFigure('platform machines: page of a pool in memory ÷ page of hosts', found.machines, found.hosts, {
      target: '≤ 2',
      note: `pages of 50 of ${size}, as JSON, ${rounds} rounds; without HTTP`,
    }),
    { name: 'platform machines: page of a pool in memory', value: spread(found.machines), unit: 'ms' },
  ]
}

const uuidOf = (index: number) => `5c3d2cf6-cb5a-41ef-9f0d-${String(index).padStart(12, '0')}`
const macOf = (index: number) => `fa:16:3e:c9:${String(index).padStart(4, '0').replace(/(..)$/, ':$1')}`

// As a real Nova and Neutron describe one; test/platform/clouds/recorded.
const serverOf = (index: number) => ({
  ...{ id: uuidOf(index), name: `worker-${index}`, status: 'ACTIVE', 'OS-EXT-STS:task_state': null },
  ...{ metadata: { line: '4' }, image: { id: uuidOf(0) }, flavor: { original_name: 'm1.large' } },
  created: new Date(1_700_000_000_000 + index * 1_000).toISOString(),
  updated: '2026-11-25T22:27:14Z',
  addresses: {
    plant: [
      {
        ...{ version: 4, addr: `10.1.${index >> 8}.${index & 255}`, 'OS-EXT-IPS:type': 'fixed' },
        'OS-EXT-IPS-MAC:mac_addr': macOf(index),
      },
    ],
  },
  'OS-EXT-AZ:availability_zone': 'nova',
  security_groups: [{ name: 'default' }],
})
const portsOf = (index: number) => [
  {
    ...{ mac: macOf(index), networkId: uuidOf(1) },
    addresses: [{ subnetId: uuidOf(2), address: `10.1.${index >> 8}.${index & 255}` }],
  },
]
