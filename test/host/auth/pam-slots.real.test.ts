import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants, copyFile, rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPam } from '../../../src/auth/pam.ts'
import { createPamSlots, type LoginOrigin } from '../../../src/auth/pam-slots.ts'
import { createRunner } from '../../../src/system/runner.ts'
import { watchForSleep } from '../../../src/system/sleep-watch.ts'

const program = '/usr/bin/pamtester'
const needs =
  process.getuid?.() !== 0
    ? 'needs root: accounts are made'
    : !existsSync(program)
      ? 'needs the package pamtester'
      : !existsSync('/etc/pam.d/common-auth')
        ? 'needs the common-* files of Debian'
        : undefined

const service = `edgehostd-slots-${process.pid}`
const user = `edgehostd-s${process.pid}`
const password = 'Correct-horse 7'

describe.skipIf(needs)(`wrong logins and the failure delay of PAM${needs ? ` (${needs})` : ''}`, () => {
  const runner = createRunner()
  const pam = createPam({
    runner,
    change: () => Promise.reject(new Error('no password is changed')),
    program,
    service,
    timeoutMs: 20_000,
  })

  beforeAll(async () => {
    await copyFile('systemd/edgehostd.pam', `/etc/pam.d/${service}`, constants.COPYFILE_EXCL)
    execFileSync('useradd', ['--no-create-home', '--shell', '/bin/bash', user])
    execFileSync('chpasswd', [], { input: `${user}:${password}\n` })
  })
  afterAll(async () => {
    await rm(`/etc/pam.d/${service}`, { force: true })
    execFileSync('userdel', [user])
  })

  function setUp(cores: number) {
    const onSleep = (pid: number, told: () => void) => watchForSleep({ pid, quietMs: 100, onSleep: told })
    const slots = createPamSlots({ cores, maximumChildren: 32, queueLength: 16, onSleep })
    const programs = { running: 0, most: 0 }
    const verify = (name: string, given: string, knownUser?: string) => {
      const origin: LoginOrigin = { client: { name, network: undefined }, knownUser }
      const credentials = { userName: user, password: given, address: name }
      return slots.run(origin, async (started) => {
        programs.most = Math.max(programs.most, ++programs.running)
        return pam.verify(credentials, started).finally(() => programs.running--)
      })
    }
    return { slots, verify, programs }
  }

  it(
    'a right login from elsewhere waits for the work of wrong ones before it and not for their sleep',
    { timeout: 300_000 },
    async () => {
      const { verify, programs } = setUp(1)
      const wrong = Array.from({ length: 10 }, (_, index) => verify(`198.51.100.${index}`, 'wrong'))
      expect(await verify('192.0.2.1', password)).toEqual({ kind: 'accepted' })
      // There is one slot: a second program runs only while the first one sleeps.
      expect(programs.most).toBeGreaterThan(1)
      expect((await Promise.all(wrong)).map(({ kind }) => kind)).toEqual(Array(10).fill('refused'))
    },
  )

  it(
    'a storm of wrong logins keeps the place of a pair that has logged in, and the bound for others',
    { timeout: 300_000 },
    async () => {
      const cores = availableParallelism()
      const { slots, verify } = setUp(cores)
      let most = 0
      const sample = setInterval(() => (most = Math.max(most, slots.figures().working)), 5)
      const wrong = Array.from({ length: 60 }, (_, index) =>
        verify(`198.51.100.${index}`, 'wrong').then(
          ({ kind }) => kind,
          (error: unknown) => (error as { code: string }).code,
        ),
      )
      expect(await verify('192.0.2.1', password, user)).toEqual({ kind: 'accepted' })
      expect(slots.figures().waiting, 'strangers still wait').toBeGreaterThan(0)
      const kinds = await Promise.all(wrong)
      clearInterval(sample)
      expect(kinds.filter((kind) => kind === 'TooManyLogins')).toHaveLength(60 - cores - 16)
      expect(most).toBeLessThanOrEqual(cores + 1)
    },
  )
})
