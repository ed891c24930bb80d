import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm, rmdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lockState, StateInUse, type StateLock } from '../../../src/store/state-lock.ts'
import { captureLog } from '../../support/https-server.ts'

let folder: string
let child: ChildProcess | undefined
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edgehostd-lock-'))
})
afterEach(async () => {
  child?.kill('SIGKILL')
  await chmod(folder, 0o700)
  await rm(folder, { recursive: true })
})

const { log, texts } = captureLog()
const lock = (): StateLock => lockState(folder, log)

/** A process that has the folder. */
async function holder() {
  const started = spawn(
    process.execPath,
    [join(import.meta.dirname, '../../support/state-holder.ts'), folder],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  )
  child = started
  expect(String(await once(started.stdout, 'data'))).toBe('held\n')
  return started
}

describe('the state folder', () => {
  it('the state folder belongs to one process; another gets the folder and the remedy in the error', async () => {
    await holder()
    expect(lock).toThrow(StateInUse)
    expect(lock).toThrow(`${folder} is in use by another edgehostd: find it with systemctl status edgehostd`)
  })

  it('the state folder belongs to one holder within a process, too', () => {
    const held = lock()
    expect(lock).toThrow(StateInUse)
    held.release()
    lock().release()
  })

  it('the state folder is free as soon as its process is killed, five times in a row', async () => {
    for (let round = 0; round < 5; round += 1) {
      const held = await holder()
      const gone = once(held, 'exit')
      held.kill('SIGKILL')
      await gone
      lock().release()
    }
  })

  it('the state folder is free once it is released', async () => {
    const held = await holder()
    held.stdin.write('\n')
    await once(held.stdout, 'data')
    lock().release()
  })

  it('the state folder stays free when a second holder was refused and has ended', async () => {
    const held = lock()
    expect(lock).toThrow(StateInUse)
    const refused = spawn(
      process.execPath,
      [join(import.meta.dirname, '../../support/state-holder.ts'), folder],
      { stdio: ['pipe', 'pipe', 'pipe'] },
    )
    expect(await once(refused, 'exit')).toEqual([1, null])
    held.release()
    lock().release()
  })

  it('the lock of the state folder takes no space', async () => {
    const held = lock()
    expect((await stat(join(folder, 'lock'))).size).toBe(0)
    held.release()
  })

  it('a state folder that cannot be locked is used without a lock, and the log says so', async () => {
    await mkdir(join(folder, 'lock'))
    lock().release()
    expect(texts().at(-1)).toBe('the state folder cannot be locked; a second daemon could start on it')
  })

  it('a lock that is removed is made again, and is not given to a second daemon', async () => {
    const held = lock()
    await rm(join(folder, 'lock'))
    held.check()
    expect(texts().at(-1)).toContain('the lock of the state folder was removed while the daemon ran')
    expect(lock).toThrow(StateInUse)
    held.check()
    held.release()
    lock().release()
  })

  it('a lock that is removed and cannot be made at once is made by a later check', async () => {
    const held = lock()
    await rm(join(folder, 'lock'))
    await mkdir(join(folder, 'lock'))
    held.check()
    await rmdir(join(folder, 'lock'))
    held.check()
    expect(lock).toThrow(StateInUse)
    held.release()
  })

  it('the daemon whose lock was removed sees that another one has the folder', async () => {
    const held = lock()
    await rm(join(folder, 'lock'))
    await holder()
    expect(() => held.check()).toThrow(StateInUse)
    held.release()
  })
})
