import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CommandFailed, createRunner, type StreamOptions } from '../../../src/system/runner.ts'

const runner = createRunner()
const timeoutMs = 10_000

/** Runs a script of the shell. */
function stream(script: string, options: Partial<StreamOptions> = {}) {
  const lines: string[] = []
  const onLine = (line: string, from: string) => lines.push(`${from}: ${line}`)
  return { lines, ended: runner.stream('sh', ['-c', script], { timeoutMs, onLine, ...options }) }
}
const failure = (run: Promise<unknown>) =>
  run.then(
    () => 'no error',
    (error: unknown) => (error instanceof CommandFailed ? error.reason : String(error)),
  )

describe('a streamed program', () => {
  it('lines of a streamed program are passed on while it runs', async () => {
    const heard = Promise.withResolvers<string>()
    async function* afterTheFirst() {
      yield `${await heard.promise}\n`
    }
    const { ended, lines } = stream('echo one; read answer; echo "$answer"; printf "the last"; exit 3', {
      input: afterTheFirst(),
      onLine: (line) => {
        lines.push(line)
        heard.resolve(`heard ${line}`)
      },
    })
    expect(await ended).toEqual({ exitCode: 3, signal: undefined, tail: 'one\nheard one\nthe last\n' })
    expect(lines).toEqual(['one', 'heard one', 'the last'])
  })

  it('lines of standard error are marked as such', async () => {
    const { ended, lines } = stream('echo out; echo err >&2')
    await ended
    expect(lines.sort()).toEqual(['stderr: err', 'stdout: out'])
  })

  it('output is unlimited: every line is passed on, and the tail has the last ones', async () => {
    let count = 0
    const { ended } = stream('seq 1000000', { onLine: () => (count += 1), tailLength: 20 })
    expect((await ended).tail).toBe('999999\n1000000\n')
    expect(count).toBe(1_000_000)
  })

  it('the result of a stream names the signal that ended the program', async () => {
    const { ended } = stream('echo begun; kill -9 $$')
    expect(await ended).toEqual({ exitCode: undefined, signal: 'SIGKILL', tail: 'begun\n' })
  })

  it('a streamed program is ended by its time limit and its signal, without waiting for a child that it left', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'edgehostd-stream-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    // The child outlives the test, unless its end is what is waited for.
    const file = join(folder, 'children')
    const held = `sleep infinity & echo $! >> ${file}; exec sleep infinity`
    expect(await failure(stream(held, { timeoutMs: 200 }).ended)).toBe('timed-out')
    expect(await failure(stream(held, { signal: AbortSignal.timeout(200) }).ended)).toBe('ended')
    const children = (await readFile(file, 'utf8')).trim().split('\n').map(Number)
    for (const child of children) expect(process.kill(child, 'SIGKILL')).toBe(true)
    expect(children).toHaveLength(2)
  })

  it('a missing program could not be streamed', async () => {
    const ended = runner.stream('/no/such/program', [], { timeoutMs, onLine: () => undefined })
    expect(await failure(ended)).toBe('not-started')
  })
})
