import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandRunner } from '../../src/system/runner.ts'

/** The files of the shell program, which is tested on booted hosts, and the exit codes of its head. */
export function playNetworkTrial(folders: { readonly runtime: string; readonly state: string }) {
  const trial = join(folders.runtime, 'trial')
  const at = (name: string) => join(trial, name)
  const uid = () => readFileSync(at('uid'), 'utf8').trim()
  const result = (exitCode: number, stdout = '', stderr = '') => ({
    exitCode,
    stdout,
    stderr,
    signal: undefined,
  })
  const calls: string[] = []
  const failures: string[] = []
  let isAsBefore = false
  let startFails: [number, string] | undefined
  const end = (text: string) => {
    for (const folder of [folders.runtime, folders.state]) {
      mkdirSync(join(folder, 'ended'), { recursive: true })
      writeFileSync(join(folder, 'ended', uid()), text)
    }
    rmSync(trial, { recursive: true })
  }
  const decide = (name: string) => {
    if (!existsSync(trial)) return 6
    if (name === 'confirming' && !existsSync(at('applied'))) return 7
    if (!existsSync(at('undecided'))) return 5
    renameSync(at('undecided'), at(name))
    return 0
  }
  const runner: CommandRunner = {
    run: async (_program, [action = '', argument = '', why = '']) => {
      calls.push(action)
      if (action === 'start') {
        if (startFails) return result(startFails[0], '', startFails[1])
        if (existsSync(trial)) return result(3, uid())
        cpSync(argument, trial, { recursive: true })
        writeFileSync(at('undecided'), '')
      }
      if (action === 'check') return result(isAsBefore ? 0 : 1)
      const decided =
        action === 'confirm'
          ? decide('confirming')
          : action === 'ask' || action === 'fail'
            ? decide('reverting')
            : 0
      if (decided === 0 && action === 'confirm') end('confirmed\nasked\n1800000000000\n\n')
      if (decided === 0 && action === 'ask') writeFileSync(at('reason'), 'asked\n')
      if (decided === 0 && action === 'fail') {
        failures.push(why)
        writeFileSync(at('reason'), 'failed\n')
      }
      return result(decided)
    },
  }
  return {
    runner,
    calls,
    /** Why changes were taken back as failed. */
    failures,
    applied: () => writeFileSync(at('applied'), '1'),
    end,
    isOpen: () => existsSync(trial),
    reboot: () => rmSync(folders.runtime, { recursive: true, force: true }),
    /** What a revert had missed is there. */
    plugIn() {
      isAsBefore = true
    },
    failStart(...how: [number, string]) {
      startFails = how
    },
  }
}

/** A change that is being tried, as the API shows it. */
export const triedChangeOfNetwork = {
  uid: '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44',
  summary: 'eth0: address 192.0.2.9/24',
  state: 'trial',
  backend: 'networkd',
  links: ['eth0'],
  requestedBy: 'alice',
  needsNewWay: true,
  windowSeconds: 60,
  creationTimestamp: '2026-01-31T09:30:00.000Z',
  deadlineTimestamp: '2026-01-31T09:31:00.000Z',
  appliedTimestamp: '2026-01-31T09:30:02.000Z',
} as const

/** The same, kept. */
export const confirmedChange = {
  ...triedChangeOfNetwork,
  state: 'confirmed',
  endTimestamp: '2026-01-31T09:30:31.000Z',
} as const
