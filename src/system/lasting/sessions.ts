import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { childOptions, loadExeca } from '../child.ts'
import type { CommandRunner } from '../runner.ts'
import type { Place } from './place.ts'

/** How long a keeper waits for its lock: a process that checks the lock holds it, shared, for a moment. */
const waitSeconds = 2
const held = 9

/**
 * Keepers in sessions of their own, for a daemon that is not a unit. The lock file in the folder of a run refuses a second
 * keeper. The command inherits the lock, so it is held while the keeper or the command runs.
 * @param kernelBoot the kernel's id of this boot
 */
export function createSessions(runner: CommandRunner, kernelBoot: () => Promise<string>): Place {
  const sessions: Place = {
    async launch({ name, lock, command }) {
      const execa = await loadExeca()
      const flock = ['--exclusive', `--wait=${waitSeconds}`, `--conflict-exit-code=${held}`, '--no-fork']
      const child = execa('flock', [...flock, lock, ...command], {
        ...childOptions,
        detached: true,
        stdio: 'ignore',
      })
      if (child.pid === undefined)
        throw new Error((await child).shortMessage ?? 'flock(1) could not be started')
      child.nodeChildProcess.unref()
      // The keeper cannot be found until it holds the lock.
      const ended = child.then(() => true)
      const pause = () => delay(10, false)
      while (
        (await sessions.findKeeper({ name, lock })) === undefined &&
        !(await Promise.race([ended, pause()]))
      );
    },
    async findKeeper({ lock }) {
      const { exitCode } = await runner.run(
        'flock',
        ['--shared', '--nonblock', `--conflict-exit-code=${held}`, lock, 'true'],
        { timeoutMs: 10_000 },
      )
      if (exitCode !== held) return undefined
      const pid = Number(await readFile(lock, 'utf8'))
      // The keeper may have been killed while its command holds the lock; its process id may then belong to another process.
      const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      return commandLine.split('\0').includes(dirname(lock)) ? pid : 0
    },
    bootId: kernelBoot,
    isEnding: () => Promise.resolve(false),
    advice: () => 'run its command by hand to see why',
  }
  return sessions
}
