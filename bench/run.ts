import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measureAttacks } from './attacks.ts'
import { measureClusterChange } from './cluster-change.ts'
import { measureCluster } from './cluster.ts'
import { measureContentBlobs, measureContentFile, measureUpload } from './content.ts'
import { measurePlatformDownloads, measureRegistry } from './downloads.ts'
import { measureContentMany, measureImages } from './event-loop.ts'
import { type Figure, type Measure, readMachine, renderTable } from './figure.ts'
import { measureClusterDiff, measureClusterPlan, measureDefinitionRules, measureLists } from './in-process.ts'
import { measureLogin, measureLoginsAtOnce, measureRefusals } from './logins.ts'
import { measurePages } from './pages.ts'
import { measurePlatformLists, measurePlatformMachines } from './platform-lists.ts'
import {
  measureConnectedHour,
  measurePlatformConnections,
  measurePlatformHeartbeats,
  measurePlatformLogins,
} from './platform.ts'
import { measureCtlStart, measureIdle, measureReads, measureStart } from './requests.ts'
import { createRig } from './rig.ts'

const figures: Readonly<Record<string, Measure>> = {
  reads: measureReads,
  attacks: measureAttacks,
  start: measureStart,
  'ctl-start': measureCtlStart,
  login: measureLogin,
  refusals: measureRefusals,
  'logins-at-once': measureLoginsAtOnce,
  idle: measureIdle,
  lists: measureLists,
  'platform-lists': measurePlatformLists,
  'platform-heartbeats': measurePlatformHeartbeats,
  'platform-connections': measurePlatformConnections,
  'platform-logins': measurePlatformLogins,
  'platform-downloads': measurePlatformDownloads,
  'platform-machines': measurePlatformMachines,
  'connected-hour': measureConnectedHour,
  'definition-rules': measureDefinitionRules,
  'cluster-plan': measureClusterPlan,
  'cluster-diff': measureClusterDiff,
  upload: measureUpload,
  'content-file': measureContentFile,
  'content-blobs': measureContentBlobs,
  'content-many': measureContentMany,
  images: measureImages,
  registry: measureRegistry,
  pages: measurePages,
  cluster: measureCluster,
  'cluster-change': measureClusterChange,
}

const help = `usage: node bench/run.ts [--quick] [--json] [--entry=FILE] [--megabytes=NUMBER] [figure ...]

figures: ${Object.keys(figures).join(', ')}; all of them if none is named
--quick       few rounds: shows whether the benchmark works, not how fast the daemon is
--json        prints the results as JSON
--entry=FILE  measure this program instead of dist/main.cjs
--megabytes=NUMBER  size of the bundles of content-* and registry; by default 2000 and 1000, and 200 with --quick
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
    megabytes: { type: 'string' },
    entry: { type: 'string', default: join(import.meta.dirname, '..', 'dist', 'main.cjs') },
  },
})

function refuse(reason: string): never {
  console.error(`bench: ${reason}`)
  process.exit(1)
}

if (values.help) {
  console.log(help)
  process.exit(0)
}
const unknown = positionals.filter((name) => !(name in figures))
if (unknown.length > 0) refuse(`unknown figure: ${unknown.join(', ')}\n${help}`)
const megabytes = values.megabytes === undefined ? undefined : Number(values.megabytes)
if (megabytes !== undefined && !(Number.isInteger(megabytes) && megabytes > 0))
  refuse('--megabytes needs a whole number above 0')
if (process.getuid?.() !== 0)
  refuse('needs root: it makes accounts and a PAM service, and removes them again')
if (!existsSync(values.entry)) refuse(`${values.entry} does not exist; run: make build`)

const rig = await createRig({
  entry: values.entry,
  isQuick: values.quick,
  megabytes,
  say: (message) => {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${message}`)
  },
})
for (const [signal, exitCode] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.once(signal, () => void rig.dispose().finally(() => process.exit(exitCode)))
}

const measured: Figure[] = []
try {
  for (const [name, measure] of Object.entries(figures)) {
    if (positionals.length === 0 || positionals.includes(name)) measured.push(...(await measure(rig)))
  }
} finally {
  await rig.dispose()
  rig.say('')
}
const machine = readMachine()
console.log(
  values.json ? JSON.stringify({ machine, figures: measured }, null, 2) : renderTable(machine, measured),
)
