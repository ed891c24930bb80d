import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, vi } from 'vitest'

/**
 * A state that the program of an earlier commit has made, in a folder of its own for each test of a file; test/fixtures/earlier has the states and
 * the programs that made them. The clock is near the time at which it was made, since sessions and keys end.
 * @param name of the archive, without `.tar.gz`
 */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the type of known.json
export function earlierState<Known extends { readonly madeAt: number }>(name: string) {
  const archive = join(import.meta.dirname, '../fixtures/earlier', `${name}.tar.gz`)
  let folder: string
  let known: Known
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'earlier-'))
    execFileSync('tar', ['-xzf', archive, '-C', folder, '--no-same-owner'])
    known = JSON.parse(readFileSync(join(folder, 'known.json'), 'utf8')) as Known
    const now = Date.now.bind(Date)
    const behind = now() - known.madeAt - 60_000
    vi.spyOn(Date, 'now').mockImplementation(() => now() - behind)
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))
  return { folder: () => folder, stateDirectory: () => join(folder, 'state'), known: () => known }
}
