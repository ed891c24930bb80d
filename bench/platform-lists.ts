import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { migrations } from '../src/edgeplatformd/migrations.ts'
import { createContinueTokens } from '../src/lists/continue-token.ts'
import { listInMemory } from '../src/lists/memory.ts'
import { parseListQuery } from '../src/lists/query.ts'
import { createKeptPools } from '../src/platform/clouds/kept-pools.ts'
import { machineList } from '../src/platform/clouds/machines.ts'
import { toMachine } from '../src/platform/clouds/openstack/openstack.ts'
import { createHostParts } from '../src/platform/hosts/hosts.ts'
import { hostList } from '../src/platform/hosts/store.ts'
import { createSecrets } from '../src/secrets/secrets.ts'
import { type Database, openDatabase } from '../src/store/database.ts'
import { createReader } from '../src/store/reader.ts'
import { systemClock } from '../src/system/clock.ts'
import { createLog } from '../src/system/log.ts'
import { type Figure, type Measure, ratioFigure, spread } from './figure.ts'
import { insertHosts } from './platform.ts'

const hostCount = 100_000
const project = 'a-project'

// Each is a list of the project, in which nearly all hosts are.
const filters = {
  and: 'spec.device.archType=arm64ANDspec.device.os.version=12',
  or: 'spec.device.archType=arm64ORspec.device.os.version=12',
  'nearly all': 'spec.device.os.family=debian',
  uid: 'metadata.uid=018bcfe5-6800-7000-8000-000000000077',
  name: 'metadata.name=host-77',
  label: 'metadata.labels.hall=3',
  'label of all': 'metadata.labels.site=a',
} as const

/** Lists of 100,000 hosts of the platform: with and without a project, and with filters. */
export const measurePlatformLists: Measure = async (rig) => {
  const rounds = rig.isQuick ? 5 : 25
  rig.say(`platform-lists: making ${hostCount} hosts`)
  const log = createLog('fatal')
  const database = openDatabase(join(rig.folder, 'platform-hosts.db'), log, migrations)
  database.sql.exec(makeHosts)
  const { hosts, close } = await openHosts(database, log)
  const tokens = createContinueTokens(randomBytes(32))

  /** Milliseconds that a page takes, also where another thread reads it. */
  async function duration(projectUid: string, text?: string): Promise<number> {
    const query = parseListQuery(text === undefined ? {} : { filters: text }, hostList, { tokens })
    const begin = performance.now()
    await hosts.list.page(query, hosts.inScope(projectUid))
    return performance.now() - begin
  }
  async function ofMany(work: () => Promise<number>): Promise<number> {
    const all = []
    for (let page = 0; page < 20; page += 1) all.push(await work())
    return spread(all).median
  }
  const tenant: number[] = []
  const first: number[] = []
  const filtered = Object.entries(filters).map(([name, text]) => ({ name, text, found: [] as number[] }))
  // Round -1 warms the code and the cache and does not count.
  for (let round = -1; round < rounds; round += 1) {
    rig.say(`platform-lists: round ${round + 1} of ${rounds}`)
    const [own, scoped] = [await ofMany(() => duration('')), await ofMany(() => duration(project))]
    const each = []
    for (const { text } of filtered) each.push(await ofMany(() => duration(project, text)))
    if (round < 0) continue
    tenant.push(own)
    first.push(scoped)
    for (const [index, { found }] of filtered.entries()) found.push(each[index] ?? Number.NaN)
  }
  rig.say('platform-lists: 20 users at once')
  const begin = performance.now()
  await Promise.all(
    Array.from({ length: 20 }, (_, user) => duration(project, `${filters.or}ORmetadata.name=host-${user}`)),
  )
  const atOnce = performance.now() - begin
  await close()

  const how = `pages of 50 of ${hostCount} hosts, 90 % of them in the project, ${rounds} rounds; without HTTP`
  const and = filtered.find(({ name }) => name === 'and')?.found ?? []
  return [
    ratioFigure('platform lists: first page in a project ÷ without', first, tenant, {
      target: '≤ 2',
      note: how,
    }),
    ratioFigure('platform lists: AND filter, 2 % match ÷ first page', and, first, { target: '≤ 3' }),
    { name: 'platform lists: first page in a project', value: spread(first), unit: 'ms' },
    ...filtered.map(({ name, found }): Figure => ({
      name: `platform lists: filter, ${name}`,
      value: spread(found),
      unit: 'ms',
      ...(name === 'and' ? {} : { target: '≤ 25 ms' }),
    })),
    { name: 'platform lists: 20 users filter at once, the last one', value: spread([atOnce]), unit: 'ms' },
  ]
}

/** The hosts of a platform, without the rest of it. */
async function openHosts(database: Database, log: Logger) {
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
  async function close(): Promise<void> {
    hosts.stop()
    await reader.close()
    database.close()
  }
  return { hosts, close }
}

const makeHosts = `
  WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${hostCount})
    INSERT INTO edge_host (uid, project_uid, host_uid, name, labels, annotations, public_key, reported, generation, is_used, is_twice,
      is_next_accepted, created_at, modified_at, seen_at, health_state)
    SELECT '018bcfe5-6800-7000-8000-' || printf('%012d', i), iif(i % 10 = 0, '', '${project}'), 'edge-' || i, 'host-' || i,
      json_object('hall', CAST(i / 10 % 20 AS TEXT), 'site', 'a'), '{}', printf('%043d', i),
      json_object('device', json_object('archType', iif(i / 10 % 20 = 0, 'arm64', 'amd64'), 'cpu', json_object('cores', 4 + i % 8),
        'memory', json_object('sizeInMB', 8192), 'os', json_object('family', 'debian', 'version', CAST(11 + i / 10 % 3 AS TEXT)),
        'nics', json_array(json_object('nicName', 'eth0', 'macAddr', '00:11:22:33:44:55', 'ip', '192.0.2.7')),
        'disks', json_array(json_object('size', 500, 'vendor', 'x'))),
        'hostAddress', '192.0.2.' || (i % 250), 'service', json_object('name', 'edgehostd', 'version', '1.' || (i % 5))),
      1, 1, 0, 0, 1700000000000 + i * 1000, 1700000000000, 1, iif(i % 60 = 1, 'unhealthy', 'healthy') FROM n;
  PRAGMA wal_checkpoint(TRUNCATE)`

const machineCount = 1_200
const pagesPerRound = 50

/** A page of the machines of a pool that are in memory, and a page of as many hosts. */
export const measurePlatformMachines: Measure = async (rig) => {
  const rounds = rig.isQuick ? 5 : 50
  const log = createLog('fatal')
  const file = join(rig.folder, 'platform-machines.db')
  const database = openDatabase(file, log, migrations)
  insertHosts(file, machineCount, 'a'.repeat(43))
  const { hosts, close } = await openHosts(database, log)
  const tokens = createContinueTokens(randomBytes(32))
  const machines = Array.from({ length: machineCount }, (_, index) =>
    toMachine(serverOf(index), portsOf(index)),
  )
  const pools = createKeptPools({
    clock: systemClock,
    log,
    stopping: new AbortController().signal,
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
  await close()
  return [
    ratioFigure('platform machines: page of a pool in memory ÷ page of hosts', found.machines, found.hosts, {
      target: '≤ 2',
      note: `pages of 50 of ${machineCount}, as JSON, ${rounds} rounds; without HTTP`,
    }),
    { name: 'platform machines: page of a pool in memory', value: spread(found.machines), unit: 'ms' },
  ]
}

const uuidOf = (index: number) => `5c3d2cf6-cb5a-41ef-9f0d-${String(index).padStart(12, '0')}`
const macOf = (index: number) => `fa:16:3e:c9:${String(index).padStart(4, '0').replace(/(..)$/, ':$1')}`

// As a real Nova and Neutron describe one; test/platform/clouds/recorded.
const serverOf = (index: number) => ({
  id: uuidOf(index),
  name: `worker-${index}`,
  status: 'ACTIVE',
  'OS-EXT-STS:task_state': null,
  metadata: { line: '4' },
  image: { id: uuidOf(0) },
  flavor: { original_name: 'm1.large' },
  created: new Date(1_700_000_000_000 + index * 1_000).toISOString(),
  updated: '2026-11-25T22:27:14Z',
  addresses: {
    plant: [
      {
        version: 4,
        addr: `10.1.${index >> 8}.${index & 255}`,
        'OS-EXT-IPS:type': 'fixed',
        'OS-EXT-IPS-MAC:mac_addr': macOf(index),
      },
    ],
  },
  'OS-EXT-AZ:availability_zone': 'nova',
  security_groups: [{ name: 'default' }],
})
const portsOf = (index: number) => [
  {
    mac: macOf(index),
    networkId: uuidOf(1),
    addresses: [{ subnetId: uuidOf(2), address: `10.1.${index >> 8}.${index & 255}` }],
  },
]
