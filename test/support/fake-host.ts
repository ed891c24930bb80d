import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandFailed, type CommandResult, type CommandRunner } from '../../src/system/runner.ts'

/** An account of the fake host. */
export interface FakeAccount {
  name: string
  uid: number
  password: string
  shell?: string
  groups?: string[]
  /** `locked`: passwd -l; `must-change`: chage -d 0; `account-expired`: chage -E 0. */
  state?: 'locked' | 'must-change' | 'account-expired'
}

export interface Call {
  readonly program: string
  readonly args: readonly string[]
  readonly input: string | undefined
}

/** The operating system as the daemon sees it: a folder of account files and a runner that acts as pamtester. */
export interface FakeHost {
  readonly etc: string
  readonly runner: CommandRunner
  /** Everything that was run. */
  readonly calls: Call[]
  readonly accounts: Map<string, FakeAccount>
  /** How pamtester behaves; `slow` decides at once and answers when released. */
  pam: 'real' | 'module-unknown' | 'silent' | 'timed-out' | 'slow'
  /** Ends of other programs, by name; without one a program ends with 2. */
  readonly ends: Map<string, { exitCode: number; stdout?: string; stderr?: string }>
  /** Releases the answers that `slow` holds back. */
  release(): void
  /** Writes the account files again, after a change of `accounts`. */
  write(): Promise<void>
  remove(): Promise<void>
}

export const pamtester = '/opt/fake/pamtester'

const stock: readonly FakeAccount[] = [
  { name: 'root', uid: 0, password: 'root pass' },
  { name: 'alice', uid: 1000, password: 'alice pass', groups: ['sudo'] },
  { name: 'bob', uid: 1001, password: 'bob pass' },
  { name: 'bobby', uid: 1002, password: 'bobby pass' },
  { name: 'fresh', uid: 1003, password: 'fresh pass', state: 'must-change' },
  { name: 'gone', uid: 1004, password: 'gone pass', state: 'account-expired' },
  { name: 'locked', uid: 1005, password: 'locked pass', state: 'locked' },
  { name: 'service', uid: 1006, password: 'service pass', shell: '/usr/sbin/nologin' },
]

export async function createFakeHost(): Promise<FakeHost> {
  const etc = await mkdtemp(join(tmpdir(), 'edgehostd-etc-'))
  const calls: Call[] = []
  const accounts = new Map(stock.map((account) => [account.name, { ...account }]))
  let held: (() => void)[] = []

  const host: FakeHost = {
    etc,
    calls,
    accounts,
    pam: 'real',
    ends: new Map(),
    runner: {
      async run(program, args, { input }) {
        if (typeof input === 'object') throw new Error('no program of this host is told more while it runs')
        calls.push({ program, args, input })
        if (program !== pamtester) {
          const end = host.ends.get(program)
          return { ...ended(end?.exitCode ?? 2, end?.stderr ?? ''), stdout: end?.stdout ?? '' }
        }
        if (host.pam === 'timed-out') throw new CommandFailed(program, 'timed-out', '20000 ms')
        if (host.pam === 'module-unknown') return ended(1, 'Password: pamtester: Module is unknown\n')
        if (host.pam === 'silent') return ended(1, '')
        const answer = play(args, input ?? '')
        if (host.pam === 'slow') await new Promise<void>((go) => held.push(go))
        return answer
      },
    },
    release() {
      host.pam = 'real'
      for (const go of held) go()
      held = []
    },
    async write() {
      const all = [...accounts.values()]
      const files = {
        passwd: all.map((each) => `${each.name}:x:${each.uid}:${each.uid}::/:${each.shell ?? '/bin/bash'}`),
        shadow: all.map((each) => {
          const lock = each.state === 'locked' ? '!' : ''
          const days = each.state === 'must-change' ? '0' : '20000'
          return `${each.name}:${lock}$y$${each.password}:${days}:0:99999:7::${each.state === 'account-expired' ? '0' : ''}:`
        }),
        group: ['sudo', 'edgehostd-admin', 'users'].map((group, index) => {
          const members = all.filter(({ groups }) => groups?.includes(group)).map(({ name }) => name)
          return `${group}:x:${27 + index}:${members.join(',')}`
        }),
        shells: ['/bin/sh', '/bin/bash'],
        'nsswitch.conf': ['passwd: files', 'group: files'],
      }
      for (const [name, lines] of Object.entries(files))
        await writeFile(join(etc, name), `${lines.join('\n')}\n`)
    },
    remove: () => rm(etc, { recursive: true }),
  }

  // The texts are those of pamtester 0.1.2 on Debian 12.
  function play(args: readonly string[], input: string): CommandResult {
    // `-I rhost=…` comes first where the client has an address.
    const [, user = '', operation = ''] = args[0] === '-I' ? args.slice(2) : args
    const [password = '', newPassword = ''] = input.split('\n')
    const account = accounts.get(user)
    const isRight = account?.password === password && account.state !== 'locked'
    if (operation.startsWith('chauthtok')) return change(isRight ? account : undefined, newPassword)
    if (!isRight) return ended(1, 'Password: pamtester: Authentication failure\n')
    if (account.state === 'account-expired')
      return ended(
        1,
        'Password: Your account has expired; please contact your system administrator.\npamtester: Authentication failure\n',
      )
    if (account.state === 'must-change')
      return ended(
        1,
        'Password: You are required to change your password immediately (administrator enforced).\npamtester: Authentication token is no longer valid; new one required\n',
      )
    return ended(0, 'Password: ')
  }

  function change(account: FakeAccount | undefined, newPassword: string): CommandResult {
    if (!account) return ended(1, 'Current password: pamtester: Authentication failure\n')
    if (newPassword.length < 6)
      return ended(
        1,
        'Current password: New password: Retype new password: You must choose a longer password.\nNew password: Password change has been aborted.\npamtester: Authentication token manipulation error\n',
      )
    account.password = newPassword
    delete account.state
    return ended(0, 'Current password: New password: Retype new password: ')
  }

  await host.write()
  return host
}

const ended = (exitCode: number, stderr: string): CommandResult => ({
  exitCode,
  stdout: '',
  stderr,
})
