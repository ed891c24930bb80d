import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { RunRefused, type LastingRun, type LastingRuns } from '../../src/system/lasting/runs.ts'

/**
 * What a step of the loop's world does (`cluster-loop.ts`): it prints the lines of `lines-<action>`, waits while `hold-<action>` exists, fails while
 * `fail-<action>` exists, does nothing and says that it did while `in-vain-<action>` exists, and otherwise writes `is-<action>`, which is what the host is
 * observed by.
 * @returns its exit code
 */
export async function takeLoopStep(
  folder: string,
  action: string,
  print: (text: string) => void,
  signal?: AbortSignal,
): Promise<number> {
  const file = (name: string) => join(folder, `${name}-${action}`)
  const text = (name: string) => (existsSync(file(name)) ? readFileSync(file(name), 'utf8') : '')
  const remove = (name: string) => rmSync(join(folder, name), { force: true })
  appendFileSync(file('begun'), 'x')
  print(text('lines'))
  while (existsSync(file('hold'))) await delay(10, undefined, { signal })
  if (existsSync(file('fail'))) {
    print(`${text('fail')}\n`)
    return 1
  }
  if (existsSync(file('in-vain'))) return 0
  if (action === 'reset') for (const name of ['is-prepare', 'is-init']) remove(name)
  if (action === 'restore') remove('is-record')
  writeFileSync(file('is'), '')
  return 0
}

/** A program that takes such a step, as `step.cjs` does its own. */
export const loopStepProgram = (folder: string) => `
import(${JSON.stringify(import.meta.filename)}).then(async ({ takeLoopStep }) => {
  process.exitCode = await takeLoopStep(${JSON.stringify(folder)}, process.argv[2], (text) => process.stdout.write(text))
})
`

interface Played {
  run: LastingRun
  output: string
  readonly stopping: AbortController
  done: Promise<unknown>
}

/** Lasting runs of such steps within the test process, which outlive every life of the loop. Real ones are in the tests `lasting-…`. */
export function playLoopRuns(folder: string): LastingRuns {
  const all = new Map<string, Played>()
  function known(name: string): Played {
    const found = all.get(name)
    if (!found) throw new RunRefused('unknown', `no run named ${name} is known`)
    return found
  }
  function requireEnded(name: string): void {
    const found = all.get(name)
    if (found && !found.run.end) throw new RunRefused('running', `the run ${name} is still running`)
  }
  return {
    async start(name, program, args) {
      requireEnded(name)
      const stopping = new AbortController()
      const run = { program, args, startedAt: Date.now(), end: undefined }
      const played: Played = { run, output: '', stopping, done: Promise.resolve() }
      const end = (exitCode: number, more: object = {}) => {
        const ended = { kind: 'exited', exitCode, endedAt: Date.now(), leftOutBytes: 0, ...more } as const
        played.run = { ...run, end: ended }
      }
      const print = (text: string) => {
        played.output += text
      }
      played.done = takeLoopStep(folder, args[1] ?? '', print, stopping.signal).then(
        (exitCode) => end(exitCode),
        () => end(143, { endedBy: 'stop' }),
      )
      all.set(name, played)
    },
    find: async (name) => all.get(name)?.run,
    async follow(name, { since, onLine, signal }) {
      const played = known(name)
      let cursor = since
      for (;;) {
        const { end } = played.run
        for (let next; (next = played.output.indexOf('\n', cursor) + 1) > 0; cursor = next)
          onLine(played.output.slice(cursor, next - 1), next)
        if (end) return end
        await delay(5, undefined, { signal })
      }
    },
    async stop(name) {
      const played = known(name)
      played.stopping.abort()
      await played.done
      return played.run.end!
    },
    async remove(name) {
      requireEnded(name)
      all.delete(name)
    },
  }
}
