import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  childrenOf,
  countChildren,
  readRssMiB,
  readTreeMiB,
  readTreeRssMiB,
  readWrittenBytes,
} from './figure.ts'
import { createClient } from './rig.ts'

// What is measured in a process of its own, so that the process that makes the load does not disturb it.

interface OfDaemon {
  readonly pid: number
}

/** What each probe is told, and what it gives. */
interface Probes {
  /** Memory of the daemon and its children together. */
  readonly memory: {
    readonly args: OfDaemon
    readonly result: { readonly beforeMiB: number; readonly peakMiB: number; readonly mostChildren: number }
  }
  /** Milliseconds that each `GET /v1/ping` took, one after the other on one connection. */
  readonly ping: {
    readonly args: { readonly port: number; readonly certificate: string }
    readonly result: readonly number[]
  }
  /** The most resident memory of the daemon alone, of it with all below it, and the same with each shared page counted once (Pss). */
  readonly rss: {
    readonly args: OfDaemon
    readonly result: { readonly daemonMiB: number; readonly treeMiB: number; readonly treePssMiB: number }
  }
  /** Bytes that the daemon and its children have written since the start of the probe. */
  readonly written: { readonly args: OfDaemon; readonly result: { readonly bytes: number } }
}

interface Sampler<Result> {
  readonly betweenMs: number
  /** Takes one sample; called again and again. */
  sample(): void | Promise<void>
  /** Called once, at the end. */
  finish(): Result
}

const samplers: {
  readonly [Name in keyof Probes]: (args: Probes[Name]['args']) => Sampler<Probes[Name]['result']>
} = {
  memory({ pid }) {
    const seen = { beforeMiB: readTreeMiB(pid), peakMiB: 0, mostChildren: 0 }
    return {
      betweenMs: 4,
      sample() {
        seen.peakMiB = Math.max(seen.peakMiB, readTreeMiB(pid))
        seen.mostChildren = Math.max(seen.mostChildren, countChildren(pid))
      },
      finish: () => seen,
    }
  },
  ping({ port, certificate }) {
    const client = createClient({ port, ca: readFileSync(certificate, 'utf8') })
    const durations: number[] = []
    return {
      betweenMs: 2,
      async sample() {
        const { durationMs, status } = await client.send('GET', '/v1/ping')
        if (status !== 200) throw new Error(`the ping answers ${status}`)
        durations.push(durationMs)
      },
      finish() {
        client.close()
        // The first ping includes the handshake of the connection.
        return durations.slice(1)
      },
    }
  },
  rss({ pid }) {
    const seen = { daemonMiB: 0, treeMiB: 0, treePssMiB: 0 }
    return {
      betweenMs: 10,
      sample() {
        seen.daemonMiB = Math.max(seen.daemonMiB, readRssMiB(pid))
        seen.treeMiB = Math.max(seen.treeMiB, readTreeRssMiB(pid))
        seen.treePssMiB = Math.max(seen.treePssMiB, readTreeMiB(pid))
      },
      finish: () => seen,
    }
  },
  // What a child writes in the last milliseconds of its life is not seen.
  written({ pid }) {
    const before = readWrittenBytes(pid) ?? 0
    const written = new Map<number, number>()
    return {
      betweenMs: 4,
      sample() {
        for (const each of [pid, ...childrenOf(pid)]) {
          const bytes = readWrittenBytes(each)
          if (bytes !== undefined) written.set(each, bytes)
        }
      },
      finish: () => ({ bytes: [...written.values()].reduce((sum, each) => sum + each, -before) }),
    }
  },
}

/** A probe that runs. */
interface Probe<Result> {
  /** Ends the process and returns its result. */
  stop(): Promise<Result>
}

/** Starts a probe, which has taken its first sample when this returns. */
export async function startProbe<Name extends keyof Probes>(
  name: Name,
  args: Probes[Name]['args'],
): Promise<Probe<Probes[Name]['result']>> {
  const child = fork(import.meta.filename, [name, JSON.stringify(args)], { execArgv: [] })
  await once(child, 'message')
  return {
    async stop() {
      const answer = once(child, 'message')
      child.send('stop')
      const [result] = (await answer) as [Probes[Name]['result']]
      child.disconnect()
      await once(child, 'exit')
      return result
    },
  }
}

/** In the process of a probe: takes samples until the message `stop`, then sends the result. */
async function runProbe<Result>({ sample, finish, betweenMs }: Sampler<Result>): Promise<void> {
  const stopping = new AbortController()
  process.once('message', () => stopping.abort())
  // The parent has died, so the result has no reader.
  process.once('disconnect', () => process.exit(0))
  await sample()
  process.send?.('ready')
  while (!stopping.signal.aborted) {
    await sleep(betweenMs)
    await sample()
  }
  process.send?.(finish())
}

if (import.meta.main) {
  const [name = '', args = ''] = process.argv.slice(2)
  await runProbe(samplers[name as keyof Probes](JSON.parse(args) as never) as Sampler<unknown>)
}
