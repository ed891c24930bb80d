import { readdir, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { containerdSocket } from './paths.ts'

/** Where every containerd has the sockets of its shims, whatever its state folder is (pkg/shim of containerd). */
const shimSockets = '/run/containerd/s'

const patienceMs = 10_000
const pauseMs = 50

/** Kills the shims of our containerd, which outlive it, and waits for their end; those of other containerds stay. */
export async function endShims(): Promise<void> {
  const end = Date.now() + patienceMs
  while (Date.now() < end) {
    const shims = await shimsOf(containerdSocket)
    if (shims.length === 0) return
    for (const pid of shims) kill(pid)
    await delay(pauseMs)
  }
}

/**
 * Finds shims by their argument `-address`.
 * @returns their process ids
 */
export async function shimsOf(address: string, proc = '/proc'): Promise<readonly number[]> {
  const pids = (await readdir(proc)).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [program = '', ...args] = (
        await readFile(join(proc, pid, 'cmdline'), 'utf8').catch(() => '')
      ).split('\0')
      const isShim = program.includes('containerd-shim') && args[args.indexOf('-address') + 1] === address
      return isShim ? [Number(pid)] : []
    }),
  )
  return found.flat()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

/** Removes the sockets of shims that were killed; one that a process listens on stays, whatever containerd it is of. */
export async function removeDeadSockets(folder = shimSockets): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isSocket() && (await isDead(path))) await rm(path, { force: true })
  }
}

/** Asked by a connection: /proc/net/unix has only the sockets of one network namespace. */
const isDead = (path: string) =>
  new Promise<boolean>((resolve) => {
    const connection = connect(path)
    connection.once('connect', () => {
      connection.destroy()
      resolve(false)
    })
    connection.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
