import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { auditList, createSearch } from '../src/audit/search.ts'
import { createTrailStore } from '../src/audit/trail-store.ts'
import { diffClusters, type DiffSide } from '../src/cluster/desired/diff.ts'
import type { DesiredState, DesiredPack } from '../src/cluster/desired/desired-state.ts'
import { createKubeadmEngine } from '../src/cluster/engine/kubeadm.ts'
import { createClusterHost } from '../src/cluster/host/create-cluster-host.ts'
import { emptyHost, type Observed } from '../src/cluster/loop/observed.ts'
import { plan, type PlanParts } from '../src/cluster/loop/plan.ts'
import { packSteps } from '../src/cluster/packs/pack-steps.ts'
import type { Profile, Variable } from '../src/definition/definition.ts'
import { parseVariables } from '../src/definition/rules/variables.ts'
import type { ClusterProfileDetail } from '../src/definition/schemas.ts'
import { createContinueTokens } from '../src/lists/continue-token.ts'
import { type ListParameters, parseListQuery } from '../src/lists/query.ts'
import { createLog } from '../src/system/log.ts'
import { runningHost, wantedCluster, wantedPack } from '../test/support/cluster-parts.ts'
import { type Database, openDatabase } from '../test/support/open-database.ts'
import { type Figure, type Measure, ratioFigure, spread } from './figure.ts'
import type { Rig } from './rig.ts'

const recordCount = 1_000_000

/** The last page of 50 out of 1,000,000 audit records ÷ the first. */
export const measureLists: Measure = async (rig) => {
  const { rounds, pages } = rig.isQuick ? { rounds: 5, pages: 100 } : { rounds: 25, pages: 400 }
  rig.say('lists: making 1,000,000 audit records')
  const database = makeRecords(join(rig.folder, 'records.db'))
  const tokens = createContinueTokens(randomBytes(32))
  const store = createTrailStore(database)
  const search = createSearch({
    database,
    store,
    // These pages are read on the event loop.
    read: async () => [],
    head: () => recordCount,
    edgeHostId: 'edge-bench',
  })
  const list = { page: (query: ReturnType<typeof read>) => search.page(query, {}) }
  const read = (parameters: ListParameters) => parseListQuery(parameters, auditList, { tokens })
  const lastToken = read({}).tokenAfter([51], recordCount - 50)

  /** Processor time of a page, microseconds. */
  const cost = async (parameters: ListParameters) => {
    const begin = process.cpuUsage()
    for (let page = 0; page < pages; page += 1) await list.page(read(parameters))
    return cpuUsSince(begin) / pages
  }
  const first: number[] = []
  const last: number[] = []
  // Round -1 warms the code and the cache and does not count.
  for (let round = -1; round < rounds; round += 1) {
    rig.say(`lists: round ${round + 1} of ${rounds}`)
    const figures = [await cost({}), await cost({ continue: lastToken })] as const
    if (round < 0) continue
    first.push(figures[0])
    last.push(figures[1])
  }
  database.close()

  const how = `pages of 50 of 1,000,000 audit records, ${rounds} rounds of ${pages} pages, processor time`
  return [
    ratioFigure('lists: last page ÷ first page', last, first, { target: '0.5 to 2', note: how }),
    { name: 'lists: first page', value: spread(first), unit: 'us' },
    { name: 'lists: last page', value: spread(last), unit: 'us' },
  ]
}

function makeRecords(file: string): Database {
  const database = openDatabase(file, createLog('fatal'))
  database.sql.exec(`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${recordCount})
      INSERT INTO audit SELECT i, '018bcfe5-6800-7000-8000-' || printf('%012d', i), 1700000000000 + i * 1000, 'user',
        'user-' || (i % 7), 'admin', '192.0.2.' || (i % 200), 'activity', 'kind-' || (i % 11), 'name-' || (i % 100),
        '4bf5d3a1-0000-4000-8000-' || printf('%012d', i), 'Log in with an operating-system account', 'success', 200,
        '7f3c2b1a-0000-4000-8000-' || printf('%012d', i), zeroblob(32), zeroblob(32), '', '' FROM n;
    PRAGMA wal_checkpoint(TRUNCATE)`)
  return database
}

function cpuUsSince(begin: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(begin)
  return user + system
}

const variableCount = 1_000

/**
 * Time to validate 1,000 variables of all formats with 100 different patterns: with the definition parsed before, and
 * with parsing it each time.
 */
export const measureDefinitionRules: Measure = async (rig): Promise<Figure[]> => {
  const rounds = rig.isQuick ? 20 : 200
  rig.say('definition-rules: 1,000 variables')
  const profile = makeProfile()
  const given = profile.variables.map(({ name, defaultValue = '' }) => ({
    name,
    profileUid: profile.uid,
    value: defaultValue,
  }))

  const firstParse = performance.now()
  const rules = parseVariables([profile])
  const parseMs = performance.now() - firstParse
  const firstCall = performance.now()
  const results = rules.validate(given)
  const firstMs = performance.now() - firstCall
  const invalid = results.filter(({ isValid }) => !isValid).length
  if (invalid > 0)
    throw new Error(`${invalid} of the variables are not valid; the figure would be the time of refusals`)

  const validate: number[] = []
  const parseAndValidate: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    validate.push(time(() => rules.validate(given)))
    parseAndValidate.push(time(() => parseVariables([profile]).validate(given)))
  }
  return [
    {
      name: 'definition-rules: 1,000 variables, definition parsed before',
      value: spread(validate),
      unit: 'ms',
      target: '≤ 20',
      note: `the first call of a fresh process ${firstMs.toFixed(1)} ms`,
    },
    {
      name: 'definition-rules: 1,000 variables, parsing the definition too',
      value: spread(parseAndValidate),
      unit: 'ms',
      note: `parsing it for the first time in a fresh process ${parseMs.toFixed(1)} ms, most of it for 100 patterns`,
    },
  ]
}

function time(work: () => unknown): number {
  const begin = performance.now()
  work()
  return performance.now() - begin
}

/** Variables of every format, each with a valid default; one in ten has a pattern of its own. */
function makeVariables(): Variable[] {
  const kinds: readonly Omit<Variable, 'name'>[] = [
    { format: 'string', defaultValue: 'some text' },
    { format: 'number', defaultValue: '8080' },
    { format: 'boolean', defaultValue: 'true' },
    { format: 'version', defaultValue: '1.33.3-rc.1+build.7' },
    { format: 'ipv4', defaultValue: '192.0.2.17' },
    { format: 'ipv4cidr', defaultValue: '192.0.2.0/24' },
    { format: 'ipv6', defaultValue: '2001:db8::192.0.2.17' },
    { format: 'base64', defaultValue: 'c29tZSB0ZXh0IHRoYXQgaXMgYSBiaXQgbG9uZ2Vy' },
    {
      inputType: 'dropdown',
      options: [{ value: 'small' }, { value: 'middle' }, { value: 'large' }],
      defaultValue: 'large',
    },
  ]
  return Array.from({ length: variableCount }, (_, index): Variable => {
    const name = `group${index % 20}.variable-${index}`
    // Every tenth has a pattern of its own, as names of hosts have.
    if (index % 10 === 9)
      return {
        name,
        required: true,
        regex: `^site${index}-[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`,
        defaultValue: `site${index}-host-17.factory.example.com`,
      }
    return { name, required: index % 2 === 0, ...kinds[index % kinds.length] }
  })
}

function makeProfile(): Profile {
  const texts = {
    place: 'profiles/u1/profile.json',
    uid: 'u1',
    name: 'bench',
    version: '1.0.0',
    description: '',
  }
  return { ...texts, tags: [], type: 'cluster', packs: [], variables: makeVariables() }
}

const packCount = 200

/** The plan of a cluster with 200 packs by the parts of the daemon: for a host without a cluster, and for one where it runs. */
export const measureClusterPlan: Measure = async (rig) => {
  const rounds = rig.isQuick ? 20 : 200
  const wanted = wantedOf(rig.folder)
  const parts = partsOf(rig)
  const before = {
    desired: wanted,
    observed: emptyHost,
    isDeleting: false,
    isRenewalAskedFor: false,
    isUpdate: false,
    hasRun: false,
  }
  const stepCount = plan(parts, before).flat().length
  const times = (observed: Observed, hasRun: boolean) =>
    Array.from({ length: rounds }, () => {
      const startedAt = performance.now()
      plan(parts, { ...before, desired: wanted, observed, hasRun })
      return performance.now() - startedAt
    })
  return [
    {
      name: `plan of a cluster with ${packCount} packs`,
      value: spread(times(emptyHost, false)),
      unit: 'ms',
      target: '≤ 50 ms',
      note: `${stepCount} steps, ${rounds} times`,
    },
    {
      name: 'plan of the same cluster while it runs',
      value: spread(times(runningHost(wanted), true)),
      unit: 'ms',
      target: '≤ 50 ms',
    },
  ]
}

const isNever = () => {
  throw new Error('a plan does not do input or output')
}

/** The parts of the daemon; a plan asks nothing of what they are made of. */
function partsOf({ folder }: Rig): PlanParts {
  const stateDirectory = join(folder, 'state-of-plan')
  const log = { debug: isNever, info: isNever, warn: isNever, error: isNever } as never
  const tools = { helm: '/nowhere/helm', kubeconfig: '/nowhere/admin.conf' }
  return {
    host: createClusterHost({
      stateDirectory,
      files: {} as never,
      runner: {} as never,
      architecture: 'amd64',
      cores: 2,
      privileged: {} as never,
      now: Date.now,
      monotonic: () => performance.now(),
      sshAccount: 'root',
      stepProgram: '/nowhere/step.cjs',
    }),
    engine: createKubeadmEngine({
      stateDirectory,
      content: {} as never,
      architecture: 'amd64',
      runner: {} as never,
      log,
      settings: { programs: { directory: '' } } as never,
      registry: isNever,
      externalRegistry: isNever,
      certificate: isNever,
      client: {} as never,
      now: Date.now,
    }),
    packs: {
      steps: (wanted, pack, observed) => packSteps(tools, wanted, pack, observed),
      removeSteps: () => [],
    },
  }
}

/** Packs of every kind: each with a namespace of its own and one that all share, two charts and three manifests; forty orders. */
const wantedOf = (folder: string): DesiredState =>
  wantedCluster({
    folder,
    kubernetes: { pack: 'edge-k8s', version: '1.34.4', config: 'clusterConfiguration: {}\n', stages: [] },
    packs: Array.from({ length: packCount }, (_each, index) => packOf(index)),
  })

function packOf(index: number): DesiredPack {
  const name = `pack-${index}`
  const given = { labels: { pack: name }, annotations: {} }
  return {
    ...wantedPack(name, Math.floor(index / 5)),
    namespaces: [
      { name, ...given },
      { name: 'shared', ...given },
    ],
    charts: ['a', 'b'].map((each) => ({
      name: each,
      version: '1.0.0',
      release: `${name}-${each}`,
      namespace: name,
      file: `charts/${name}-${each}.tgz`,
      valuesFile: `values/${name}-${each}.yaml`,
    })),
    manifests: ['a', 'b', 'c'].map((each) => ({
      name: each,
      namespace: name,
      file: `manifests/${name}-${each}.json`,
    })),
  }
}

/** The diff of two revisions of a cluster with 200 packs, every one of which differs, with values of 64 KiB and two variables each. */
export const measureClusterDiff: Measure = ({ isQuick }) => {
  const rounds = isQuick ? 20 : 200
  // As they are read from the disk: each string of its own, and flat.
  const [before, after] = [sideOf('1'), sideOf('2')].map(
    (side) => JSON.parse(JSON.stringify(side)) as DiffSide,
  ) as [DiffSide, DiffSide]
  const times = Array.from({ length: rounds }, () => {
    const startedAt = performance.now()
    const { packs, variables } = diffClusters(before, after)
    const tookMs = performance.now() - startedAt
    if (packs.length !== packCount || variables.length !== 2 * packCount)
      throw new Error('the diff is not whole')
    return tookMs
  })
  return Promise.resolve([
    {
      name: `diff of a cluster with ${packCount} packs`,
      value: spread(times),
      unit: 'ms',
      target: '≤ 50 ms',
      note: `all of them changed, ${rounds} times`,
    },
  ])
}

function sideOf(mark: string): DiffSide {
  const packs = Array.from({ length: packCount }, (_each, index) => changedPack(index, mark))
  return {
    desired: wantedCluster({ packs }),
    definition: { name: 'shop', version: mark, sha256: mark },
    profiles: [profileOf(packs, mark)],
    given: packs.map(({ name }) => ({ name: `${name}-given`, value: mark })),
  }
}

function changedPack(index: number, mark: string): DesiredPack {
  const name = `pack-${index}`
  const pack = wantedPack(name, Math.floor(index / 5))
  return {
    ...pack,
    version: mark,
    digest: `${pack.digest} ${mark}`,
    namespaces: [{ name, labels: { pack: name, mark }, annotations: {} }],
    charts: ['a', 'b'].map((each) => ({
      name: each,
      version: '1.0.0',
      release: `${name}-${each}`,
      namespace: name,
      file: each,
      sum: each,
      valuesFile: each,
      valuesSum: mark,
    })),
    manifests: ['a', 'b', 'c'].map((each) => ({ name: each, namespace: name, file: each, sum: mark })),
  }
}

const profileOf = (packs: readonly DesiredPack[], mark: string): ClusterProfileDetail => ({
  profileUid: 'p1',
  profileName: 'shop',
  profileVersion: mark,
  profileType: 'cluster',
  profileDescription: '',
  profileTags: '',
  packs: packs.map(({ name, version }) => ({
    name,
    version,
    layer: 'addon',
    values: `${'x'.repeat(65_536)}${mark}`,
    logo: '',
    images: [],
  })),
  variables: packs.flatMap(({ name }) => [
    { name: `${name}-given`, displayName: name },
    { name: `${name}-default`, defaultValue: mark },
  ]),
})
