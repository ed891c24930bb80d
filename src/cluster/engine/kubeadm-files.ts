import { createHash } from 'node:crypto'
import { mkdtemp, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createBoundedRunner } from '../../system/bounded-memory.ts'
import { CommandFailed, type CommandRunner } from '../../system/runner.ts'
import type { DesiredKubeadm } from './kubeadm-config.ts'
import { kubeadmFailure } from './run-kubeadm.ts'

const timeoutMs = 30_000
// Answers of one preparation: its step asks the same as pre-flight.
const mostAnswers = 4
const scratchPrefix = '.ask-'

/** Whether a folder of this name contains the files of a question to kubeadm; after a start it is a leftover of a killed daemon. */
export const isScratch = (name: string) => name.startsWith(scratchPrefix)

export interface KubeadmFilesOptions {
  /** A folder for short-lived files, which contain secrets. */
  readonly folder: string
  readonly runner: CommandRunner
}

/**
 * Asks kubeadm about configurations; changes nothing of the host. An answer follows from the program and the text alone, so the last ones
 * are given again for the same file of the program and the same text.
 */
export interface KubeadmFiles {
  /**
   * Makes the file for `kubeadm init`.
   * @param kubeadm path of the program
   * @throws Error naming the problem of `cluster.config` of the pack
   */
  make(kubeadm: string, desired: DesiredKubeadm, signal?: AbortSignal): Promise<string>
  /** Has kubeadm judge a file. @throws Error naming its problem */
  validate(kubeadm: string, text: string, signal?: AbortSignal): Promise<void>
  /** Images that Kubernetes needs. @throws Error with the failure of kubeadm */
  images(kubeadm: string, text: string, signal?: AbortSignal): Promise<readonly string[]>
}

export function createKubeadmFiles({ folder, runner }: KubeadmFilesOptions): KubeadmFiles {
  const bounded = createBoundedRunner(runner)
  /** By their input; the oldest first. */
  const answers = new Map<string, Promise<string>>()

  async function ask(
    kubeadm: string,
    args: readonly string[],
    text: string,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    const key = createHash('sha256')
      .update(JSON.stringify([await identityOf(kubeadm), args, text]))
      .digest('hex')
    const asked = answers.get(key)
    // One that was refused, or was ended by the signal of its own caller, is no answer to this one.
    const known = asked && (await asked.catch(() => undefined))
    if (known !== undefined) return known
    const answer = askNow(kubeadm, args, text, signal)
    answers.set(key, answer)
    answer.catch(() => answers.get(key) === answer && answers.delete(key))
    const [oldest = ''] = answers.keys()
    if (answers.size > mostAnswers) answers.delete(oldest)
    return answer
  }

  async function askNow(
    kubeadm: string,
    args: readonly string[],
    text: string,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const scratch = await mkdtemp(join(folder, scratchPrefix))
    try {
      const [given, made] = [join(scratch, 'given.yaml'), join(scratch, 'made.yaml')]
      await writeFile(given, text, { mode: 0o600 })
      const all = args.map((argument) => argument.replace('GIVEN', given).replace('MADE', made))
      const result = await bounded
        .run(kubeadm, all, { timeoutMs, ...(signal ? { signal } : {}) })
        .catch((error: unknown) => {
          // The cause of so much is the configuration.
          if (error instanceof CommandFailed && error.reason === 'too-much-memory')
            throw new Error(`${error.message}, to read the configuration of the pack`, { cause: error })
          throw error
        })
      if (result.exitCode !== 0) throw new Error(kubeadmFailure(result.stderr || result.stdout))
      return args.includes('MADE') ? await readFile(made, 'utf8') : result.stdout
    } finally {
      await rm(scratch, { recursive: true, force: true })
    }
  }

  return {
    async make(kubeadm, desired, signal) {
      // Loaded with the first cluster: a start does not need yaml.
      const { parsePackConfig } = await import('./pack-config.ts')
      const { configToMigrate, kubeadmConfig } = await import('./kubeadm-config.ts')
      const config = parsePackConfig(desired.kubernetes)
      const old = configToMigrate(desired, config)
      const args = ['config', 'migrate', '--old-config', 'GIVEN', '--new-config', 'MADE']
      const migrated = old === undefined ? undefined : await ask(kubeadm, args, old, signal)
      return kubeadmConfig(desired, config, migrated)
    },
    async validate(kubeadm, text, signal) {
      await ask(kubeadm, ['config', 'validate', '--config', 'GIVEN'], text, signal)
    },
    async images(kubeadm, text, signal) {
      const output = await ask(kubeadm, ['config', 'images', 'list', '--config', 'GIVEN'], text, signal)
      return output.split('\n').filter(Boolean)
    },
  }
}

/** Differs for another program, even at the path of the former. */
async function identityOf(program: string): Promise<string> {
  const { dev, ino, size, mtimeNs } = await stat(program, { bigint: true })
  return [dev, ino, size, mtimeNs].join(' ')
}
