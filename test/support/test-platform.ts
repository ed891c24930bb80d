import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configuration, type PlatformConfig } from '../../src/edgeplatformd/declarations.ts'
import type { UserEntity } from '../../src/platform/users/schemas.ts'
import { createPlatform } from '../../src/edgeplatformd/root.ts'
import { createRunner, type CommandRunner } from '../../src/system/runner.ts'
import { captureLog, generous } from './https-server.ts'
import { createRunningClock } from './turning-clock.ts'
import { createWorkersHere, examineHere } from './workers-here.ts'

export interface TestPlatformOptions {
  /** A state folder that outlives the platform or exists before it; by default a folder of its own. */
  readonly stateDirectory?: string
  /** Path of root's socket; by default there is no socket. */
  readonly socket?: string
  /** After this time an idle connection is closed; by default after a minute. */
  readonly idleMs?: number
  /** By default requests are not limited. */
  readonly rateLimits?: Partial<PlatformConfig['api']['rateLimits']>
  /** For platforms that accept packs and profiles: `examineProgram` of programs.ts; by default they are examined in this process. */
  readonly examineProgram?: string
  /** Folder of the pages; by default one with an empty document. */
  readonly pagesFolder?: string
  /** Runs what examines, for tests of how it ends. */
  readonly runner?: CommandRunner
  /** More settings, as flags: `--platform.hostName=platform.example`. */
  readonly flags?: readonly string[]
}

// Thousands of requests of a test do not wait for a disk.
const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** The composition root of the platform, by `inject` until it is started. Its clock can be turned. */
export async function createTestPlatform(options: TestPlatformOptions = {}) {
  const clock = createRunningClock()
  const { log, lines } = captureLog()
  const stateDirectory = options.stateDirectory ?? (await mkdtemp(join(memory, 'edgeplatform-')))
  const commandLine = configuration.parseCommandLine([
    `--state.directory=${stateDirectory}`,
    '--api.address=127.0.0.1',
    `--api.socket.path=${options.socket ?? ''}`,
    ...(options.flags ?? []),
  ])
  const { config } = await configuration.loadConfig({
    commandLine,
    environment: {},
    defaultFile: '/nowhere/config.yaml',
  })
  const platform = await createPlatform({
    config: {
      ...config,
      api: {
        ...config.api,
        timeouts: { ...generous, idleMs: options.idleMs ?? generous.idleMs },
        // A free port of the kernel; the configuration does not accept 0.
        port: 0,
        rateLimits: { ...config.api.rateLimits, enabled: false, ...options.rateLimits },
      },
    },
    log,
    version: '1.2.3',
    buildDate: Date.UTC(2026, 0, 1),
    edges: {
      runner:
        options.runner ?? (options.examineProgram === undefined ? createWorkersHere() : createRunner(log)),
      clock,
      examineProgram: options.examineProgram ?? examineHere,
      pagesFolder: options.pagesFolder ?? join(import.meta.dirname, 'pages'),
      // All lines, so that a test may check each.
      anonymousLog: Object.assign(log, { reserve: () => undefined, stop: () => undefined }),
      // Hundreds of tests sign in; the cost itself has tests of its own (password-hash.test.ts).
      passwordCost: { memory: 64, passes: 1 },
      environment: {},
    },
  })
  const { users, links } = platform.rooms.people
  const { app } = platform

  return {
    ...platform,
    /** A user with a password, as an administrator and then the user make one; gives the uid. */
    async addUser(emailId: string, password: string, roles: UserEntity['spec']['roles'] = []) {
      const uid = users.create({ spec: { emailId, roles } })
      const url = new URL(links.takeUnshown(uid) ?? '').pathname
      const reply = await app.inject({ method: 'PATCH', url, payload: { password } })
      if (reply.statusCode !== 204) throw new Error(`${reply.statusCode} ${reply.body}`)
      return uid
    },
    /** A sign-in that has to succeed; gives the header field. */
    async signIn(emailId: string, password: string) {
      const url = '/v1/auth/authenticate'
      const reply = await app.inject({ method: 'POST', url, payload: { emailId, password } })
      if (reply.statusCode !== 200) throw new Error(`${reply.statusCode} ${reply.body}`)
      return { authorization: reply.json<{ Authorization: string }>().Authorization }
    },
    clock,
    lines,
    stateDirectory,
    async close() {
      await platform.stop()
      if (options.stateDirectory === undefined) await rm(stateDirectory, { recursive: true, force: true })
    },
  }
}
