import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'end-process-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

it.each([0, 78])('a process ends with %d although one of its threads waits for a pipe', async (exitCode) => {
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const script = `
    import { open } from 'node:fs/promises'
    import { writeSync } from 'node:fs'
    import { endProcess } from '${join(import.meta.dirname, '../../../src/program/end-sessions.ts')}'
    process.on('exit', () => writeSync(1, 'a listener had its turn'))
    void open(process.argv[1])
    setTimeout(() => endProcess(${exitCode}), 200)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, pipe])
  const ended = once(child, 'exit')
  const said = once(child.stdout, 'data')
  expect(String((await said)[0])).toBe('a listener had its turn')
  expect(await ended).toEqual([exitCode, null])
})
