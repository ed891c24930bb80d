import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A proxy that holds what passes at a step of a conversation, so that a program can be killed exactly there. */
export interface SteppingProxy {
  /** `http://host:port`, for the host on whose loopback it is. */
  readonly url: string
  /**
   * Counts turns from now: a request is one, and its reply the next.
   * @param turn which one is held; without it none
   * @returns when it counts; `held` is fulfilled when that turn has come
   */
  hold(turn?: number): Promise<{ readonly held: Promise<undefined> }>
  /** Lets go what is held. */
  release(): void
  /** Turns since the last `hold`. */
  count(): Promise<number>
  stop(): Promise<void>
}

/**
 * Starts it on the loopback of a booted host.
 * @param address where all its connections go, port 443
 */
export async function startSteppingProxy(leader: number, address: string): Promise<SteppingProxy> {
  const port = 3_130
  const program = join(import.meta.dirname, 'stepping-proxy-program.ts')
  const child = spawn(
    'nsenter',
    [
      ...['-t', String(leader), '-n', 'setpriv', '--pdeathsig', 'KILL'],
      ...[process.execPath, program, String(port), address],
    ],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  let onHeld = (): void => undefined
  const waiting: { readonly matches: RegExp; readonly found: (line: string) => void }[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line === 'held') onHeld()
    const at = waiting.findIndex(({ matches }) => matches.test(line))
    if (at >= 0) waiting.splice(at, 1)[0]!.found(line)
  })
  const line = (matches: RegExp) =>
    new Promise<string>((found) => {
      waiting.push({ matches, found })
    })
  const say = (words: string) => void child.stdin.write(`${words}\n`)
  await Promise.race([line(/^listening$/), once(child, 'close')])
  if (child.exitCode !== null) throw new Error(`the proxy does not listen on port ${port}`)
  return {
    url: `http://127.0.0.1:${port}`,
    async hold(turn = Infinity) {
      const { promise, resolve } = Promise.withResolvers<undefined>()
      onHeld = () => resolve(undefined)
      const armed = line(/^armed$/)
      say(`hold ${turn}`)
      await armed
      return { held: promise }
    },
    release: () => say('go'),
    async count() {
      const counted = line(/^\d+$/)
      say('count')
      return Number(await counted)
    },
    async stop() {
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}
