import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { endSessions } from '../../../src/program/end-sessions.ts'
import { lockState } from '../../../src/store/state-lock.ts'
import { captureLog } from '../../support/https-server.ts'

const { log } = captureLog()
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'end-sessions-'))
  writeFileSync(join(folder, 'secret'), 'x'.repeat(32))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the secret of a state folder', () => {
  it('the secret of a state folder is removed, and a missing one is no error', async () => {
    expect(await endSessions(folder, log)).toEqual({ wasThere: true, isRunning: false })
    expect(existsSync(join(folder, 'secret'))).toBe(false)
    expect(await endSessions(folder, log)).toEqual({ wasThere: false, isRunning: false })
  })

  it('the secret is removed while a daemon uses the folder, which is reported', async () => {
    const lock = lockState(folder, log)
    expect(await endSessions(folder, log)).toEqual({ wasThere: true, isRunning: true })
    lock.release()
    expect(existsSync(join(folder, 'secret'))).toBe(false)
  })

  it('a missing state folder is the error of the system, and is not created', async () => {
    const none = join(folder, 'none')
    await expect(endSessions(none, log)).rejects.toMatchObject({ code: 'ENOENT' })
    expect(existsSync(none)).toBe(false)
  })
})
