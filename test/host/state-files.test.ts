import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { adviseOnStart, seeDisk } from '../../src/errors/advice.ts'
import { openState, type StateOptions } from '../../src/root/state.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'edgehostd-state-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

describe('a database path that is not a regular file', () => {
  it.each<[string, (path: string) => void, RegExp]>([
    [
      'a pipe',
      (path) => execFileSync('mkfifo', [path]),
      /edgehostd\.db is a named pipe, not a regular file: look/,
    ],
    [
      'a device',
      (path) => symlinkSync('/dev/zero', path),
      /edgehostd\.db is a device, not a regular file: look/,
    ],
    ['a folder', (path) => mkdirSync(path), /edgehostd\.db is a folder, not a regular file: look/],
    [
      'a link to itself',
      (path) => symlinkSync(path, path),
      /ELOOP.*: look at it with ls -ld .*edgehostd\.db/,
    ],
  ])('%s in place of the database is named', async (_, place, advice) => {
    place(join(directory, 'edgehostd.db'))
    const options = {
      settings: { directory },
      log: pino({ enabled: false }),
    } as unknown as StateOptions
    const error = await openState(options).catch((thrown: unknown) => thrown)
    expect(adviseOnStart(error, directory)?.message).toMatch(advice)
  })
})

// Only root may mount.
it.skipIf(process.getuid?.() !== 0)('a state folder on a read-only disk is named as the cause', async () => {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'edgehostd-test', directory])
  try {
    const options = { settings: { directory }, log: pino({ enabled: false }) } as unknown as StateOptions
    const error = await openState(options).catch((thrown: unknown) => thrown)
    expect(adviseOnStart(error, directory)?.message).toContain(`'${directory}': ${seeDisk}`)
  } finally {
    execFileSync('umount', [directory])
  }
})
