import { lstat, rm, rmdir, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { replaceFile } from '../../system/files.ts'
import { CommandFailed, type CommandRunner, type RunOptions } from '../../system/runner.ts'
import { cniFolders, unitFolder } from '../engine/paths.ts'
import { StepFailed } from '../loop/step.ts'
import { leftMark } from './cluster-host.ts'
import type { Subnet } from '../../base/subnet.ts'
import type { HostState } from './host-state.ts'
import { mountPoints } from './read-state.ts'
import { nftScript } from './read-state.ts'
import { planRestore, titleOf, type HostChange } from './plan-restore.ts'
import { readHostState } from './read-state.ts'

export interface RestoreOptions {
  readonly runner: CommandRunner
  /** Undefined where the record is lost. */
  readonly before: HostState | undefined
  /** Of pods and services. */
  readonly networks: readonly Subnet[]
  readonly print: (line: string) => void
}

// Some things go only after others, and the interfaces of a network namespace some time after it.
const rounds = 10
const pauseMs = 300
const timeoutMs = 60_000

/**
 * Removes leftovers of the cluster from the host, one by one, and observes again until nothing of it is left.
 * @throws StepFailed with the remaining ones
 */
export async function restoreHost({ runner, before, networks, print }: RestoreOptions): Promise<void> {
  const problems = new Map<string, string>()
  const done = new Set<string>()
  for (let round = 1; ; round++) {
    const { changes, left } = planRestore(before, await readHostState(runner), networks)
    if (changes.length === 0) {
      for (const each of left) print(`${leftMark}${each}`)
      return
    }
    if (round > rounds) throw new StepFailed(sentence(changes, problems))
    if (round > 1) await delay(pauseMs)
    for (const change of changes) {
      const title = titleOf(change)
      const problem = await problemOf(() => make(runner, change))
      if (problem !== undefined) problems.set(title, problem)
      else if (!done.has(title)) print(`${isPutBack(change) ? 'put back' : 'taken away'}: ${title}`)
      done.add(title)
    }
  }
}

const isPutBack = ({ kind }: HostChange) => kind === 'sysctl' || kind === 'network-config'

function sentence(changes: readonly HostChange[], problems: ReadonlyMap<string, string>): string {
  const each = changes.slice(0, 5).map((change) => {
    const problem = problems.get(titleOf(change))
    return problem === undefined ? `${titleOf(change)} came again` : `${titleOf(change)}: ${problem}`
  })
  const more = changes.length > each.length ? ` and ${changes.length - each.length} more` : ''
  return `not all of the cluster could be taken from this host (${each.join('; ')}${more}); take it away by hand, the deletion is then continued`
}

async function problemOf(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

async function make(runner: CommandRunner, change: HostChange): Promise<void> {
  const run = (program: string, ...args: readonly string[]) => runOrThrow(runner, program, args)
  switch (change.kind) {
    case 'unit': {
      const unit = change.name.split('/').find((part) => part.endsWith('.service')) ?? change.name
      await run('systemctl', 'disable', '--now', unit).catch(() => undefined)
      await removePath(runner, join(unitFolder, change.name))
      return run('systemctl', 'daemon-reload')
    }
    case 'slice':
      return run('systemctl', 'stop', change.name)
    case 'namespace':
      await removeEnds(runner, change.name)
      await run('ip', 'netns', 'delete', change.name)
      // The last one leaves its folder, which containerd has made; with others in it, it stays.
      await rmdir('/run/netns').catch(() => undefined)
      return
    case 'link':
      return run('ip', 'link', 'delete', 'dev', change.name)
    case 'quiet-link':
      await run('ip', 'address', 'flush', 'dev', change.name)
      return run('ip', 'link', 'set', 'dev', change.name, 'down')
    case 'ip-set':
      return run('ipset', 'destroy', change.name)
    case 'nft-table':
      return run('nft', 'delete', 'table', ...change.table.split(' '))
    case 'filter':
      return removeRules(runner, change)
    case 'route':
      return run('ip', `-${change.family}`, 'route', 'delete', ...change.text.split(' '))
    case 'policy':
      return run('ip', `-${change.family}`, 'rule', 'delete', ...policyArguments(change.text))
    case 'path':
      return removePath(runner, change.path)
    case 'network-config':
      return replaceFile(`${cniFolders.configs}/${change.name}`, change.content, 0o644)
    case 'sysctl':
      return writeFile(`/proc/sys/${change.name}`, change.value)
  }
}

/**
 * Removes the ends of a pod, and with them those on the host: a process that hangs, or a connection that its other side does not end,
 * keeps a network namespace for minutes after it has lost its name.
 */
async function removeEnds(runner: CommandRunner, namespace: string): Promise<void> {
  const args = ['-json', '-netns', namespace, 'link', 'show', 'type', 'veth']
  const { stdout } = await runner.run('ip', args, { timeoutMs })
  // Where the namespace is damaged there is no output; its removal then says why.
  for (const { ifname } of JSON.parse(stdout || '[]') as readonly { readonly ifname: string }[])
    await runOrThrow(runner, 'ip', ['-netns', namespace, 'link', 'delete', 'dev', ifname])
}

/** `7000: from all lookup 77` as arguments; `[detached]` and the like say the state of a policy. */
function policyArguments(text: string): readonly string[] {
  const [, priority = '', rest = ''] = /^(\d+): (.*)$/.exec(text) ?? []
  return ['priority', priority, ...rest.split(' ').filter((word) => !word.startsWith('['))]
}

type FilterChange = Extract<HostChange, { kind: 'filter' }>

/** All lines in one transaction; where the kernel refuses it, line by line, so that one of them does not keep the others. */
async function removeRules(
  runner: CommandRunner,
  { program, table, lines }: FilterChange,
  isWhole = true,
): Promise<void> {
  try {
    if (program === 'nft')
      await runOrThrow(runner, 'nft', ['--file', '-'], { input: nftScript(table, lines) })
    else {
      const input = [`*${table}`, ...lines, 'COMMIT', ''].join('\n')
      // --wait is of the legacy variant: other programs hold its lock.
      await runOrThrow(runner, `${program}-restore`, ['--noflush', '--wait', '10'], { input })
    }
  } catch (error) {
    if (!isWhole || lines.length === 1) throw error
    const problems = new Set<string>()
    for (const line of lines) {
      const problem = await problemOf(() =>
        removeRules(runner, { kind: 'filter', program, table, lines: [line] }, false),
      )
      if (problem !== undefined) problems.add(`${line}: ${problem}`)
    }
    if (problems.size > 0) throw new Error([...problems].slice(0, 3).join('; '), { cause: error })
  }
}

/** Removes a path with its content, after mounts in it; nothing is removed through a mount or a link. */
async function removePath(runner: CommandRunner, path: string): Promise<void> {
  const stats = await lstat(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  })
  if (!stats) return
  if (!stats.isDirectory()) return unlink(path)
  const isBelow = (mount: string) => mount === path || mount.startsWith(`${path}/`)
  for (const mount of (await mountPoints()).filter(isBelow).reverse())
    await runOrThrow(runner, 'umount', [mount])
  const mounted = (await mountPoints()).find(isBelow)
  if (mounted !== undefined) throw new Error(`${mounted} is still mounted`)
  await rm(path, { recursive: true, force: true })
}

async function runOrThrow(
  runner: CommandRunner,
  program: string,
  args: readonly string[],
  options: Partial<RunOptions> = {},
): Promise<void> {
  const { exitCode, stdout, stderr } = await runner
    .run(program, args, { timeoutMs, ...options })
    .catch((error: unknown) => {
      throw error instanceof CommandFailed ? new Error(error.message, { cause: error }) : error
    })
  if (exitCode === 0) return
  const said = (stderr.trim() || stdout.trim()).split('\n').slice(0, 2).join('; ')
  throw new Error(said || `${program} ended with exit code ${exitCode ?? 'none'}`)
}
