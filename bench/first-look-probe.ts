import { spawnSync } from 'node:child_process'
import { createHostFiles } from '../src/host/files.ts'
import { createSnapshot } from '../src/host/snapshot.ts'
import { openDatabase } from '../src/store/database.ts'
import { systemClock } from '../src/system/clock.ts'
import { createLog } from '../src/system/log.ts'
import { createRunner } from '../src/system/runner.ts'

export interface FirstLookOrder {
  /** Which of the two comes first. */
  readonly first: 'look' | 'tools'
}

/** What one fresh process has seen. */
export interface FirstLook {
  /** From nothing to a reply that could go out. */
  readonly lookMs: number
  readonly toolsMs: number
  /** Tools that are not on this machine: they cost nothing. */
  readonly missing: readonly string[]
  /** Tools that ended with an error. */
  readonly refusing: readonly string[]
}

// As the issue names them.
const tools = [
  ['lsblk', '-J'],
  ['ip', '-j', 'a'],
  ['ip', '-j', 'r'],
  ['cat', '/etc/os-release'],
  ['timedatectl', 'show-timesync'],
  ['resolvectl', 'dns'],
] as const

const { first } = JSON.parse(process.argv[2] ?? '{}') as FirstLookOrder
const log = createLog('fatal')
const runner = createRunner()
const database = openDatabase(':memory:', log)

const makeSnapshot = () =>
  createSnapshot({
    files: createHostFiles(),
    runner,
    privileged: runner,
    clock: systemClock,
    log,
    database,
    config: { identitySources: ['product-uuid', 'machine-id'], mode: 'airgap' },
    agentVersion: 'bench',
  })

async function look(): Promise<number> {
  const startedAt = performance.now()
  const snapshot = await makeSnapshot()
  await snapshot.refresh('all')
  const tookMs = performance.now() - startedAt
  if (snapshot.current() === undefined) throw new Error('the first look gave no reply')
  return tookMs
}

function askTools(): Omit<FirstLook, 'lookMs'> {
  const missing: string[] = []
  const refusing: string[] = []
  let toolsMs = 0
  for (const [program, ...args] of tools) {
    const startedAt = performance.now()
    const { error, status } = spawnSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') {
      missing.push(program)
      continue
    }
    toolsMs += performance.now() - startedAt
    if (status !== 0) refusing.push(program)
  }
  return { toolsMs, missing, refusing }
}

async function measure(): Promise<FirstLook> {
  // By then the daemon has told systemd that it is ready, through a program too.
  await runner.run('true', [], { timeoutMs: 5_000 })
  const early = first === 'tools' ? askTools() : undefined
  const lookMs = await look()
  return { lookMs, ...(early ?? askTools()) }
}

void measure().then((result) => process.stdout.write(JSON.stringify(result)))
